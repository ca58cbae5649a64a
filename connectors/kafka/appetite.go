package kafka

import (
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// appetite bounds what a fetch takes once it is unpacked. Brokers count bytes as they are stored, and a megabyte of them may be a million
// records: of a topic that compresses a hundredfold, or of records that are nearly empty, each of which the client turns into a
// structure many times its size. So fetches shrink as soon as what comes out of one is too much, and grow again while it is not. Brokers
// answer with whole batches, at least one, so that much is not for the reader to bound.
//
// The first fetch asks for all that is configured. A smaller one would bound it too, but the embedded broker leaves aborted transactions out of
// an answer that the size of the whole fetch cuts short, and the client takes their records for committed ones. No ordinary topic shrinks fetches so
// far that this would happen.
//
// The client unpacks an answer before it asks the same broker again. What is seen while unpacking therefore holds from the very next
// fetch on. The first fetch, and a topic that changes its nature between two fetches, exceed the bound once.
//
// Its methods are hooks, called from the client's goroutines.
type appetite struct {
	budget       int64 // bytes of memory that a fetch should not exceed
	maxFetch     int64
	maxPartition int32                        // stays as it is: brokers remember it from the first fetch of a session
	apply        func(fetch, partition int32) // set before the client fetches anything

	mu struct {
		sync.Mutex
		limit int64
		meals map[int32]meal // by broker
	}
}

// meal is the last answer of a broker.
type meal struct {
	stored, memory int64   // of the batches that are unpacked so far
	density        float64 // memory per stored byte of the answer before, which is complete
}

const (
	// smallestFetch is what fetches may shrink to: one batch, as there is nothing less.
	smallestFetch = 1
	// growth is how much larger one answer may be than the one before.
	growth = 4
	// memoryOfRecord is what the client makes of each record besides its bytes: a structure, and the pointer to it.
	memoryOfRecord = 192
	// batchHeader is what a batch has besides its records.
	batchHeader = 61
	// unpacked is how much memory a fetch may take, in multiples of fetch_max_bytes.
	unpacked = 2
)

// newAppetite makes the hook. The caller gives it to a client, and calls feed with that client before it fetches.
func newAppetite(s *Source) *appetite {
	a := &appetite{budget: unpacked * int64(s.FetchMaxBytes), maxFetch: int64(s.FetchMaxBytes), maxPartition: int32(s.FetchMaxPartitionBytes)}
	a.mu.limit = a.maxFetch
	a.mu.meals = make(map[int32]meal)
	return a
}

// feed tells the client what to begin with, and whom to tell what came of it.
func (a *appetite) feed(client *kgo.Client) {
	a.apply = client.UpdateFetchMaxBytes
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setLocked(a.mu.limit)
}

// OnBrokerRead implements [kgo.HookBrokerRead]: an answer is there, and about to be unpacked.
func (a *appetite) OnBrokerRead(meta kgo.BrokerMetadata, key int16, read int, _, _ time.Duration, err error) {
	if err != nil || kmsg.Key(key) != kmsg.Fetch {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	next := meal{density: a.mu.meals[meta.NodeID].density}
	if last := a.mu.meals[meta.NodeID]; last.stored > 0 { // answers to the reader's own questions show no batches, and say nothing
		next.density = last.ratio()
	}
	a.mu.meals[meta.NodeID] = next
	if int64(read) < a.mu.limit/2 {
		return // it is not the limit that keeps answers small
	}
	a.setLocked(min(growth*max(a.mu.limit, int64(read)), a.maxFetch))
}

// OnFetchBatchRead implements [kgo.HookFetchBatchRead]: a part of the answer has been unpacked.
func (a *appetite) OnFetchBatchRead(meta kgo.BrokerMetadata, _ string, _ int32, batch kgo.FetchBatchMetrics) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.mu.meals[meta.NodeID]
	m.stored += int64(batch.CompressedBytes) + batchHeader
	m.memory += int64(batch.UncompressedBytes) + int64(batch.NumRecords)*memoryOfRecord
	a.mu.meals[meta.NodeID] = m
	if m.ratio()*float64(a.mu.limit) > float64(a.budget) {
		a.setLocked(a.mu.limit)
	}
}

// OnBrokerDisconnect implements [kgo.HookBrokerDisconnect]. What a broker that is gone sent last would bind the others for ever.
func (a *appetite) OnBrokerDisconnect(meta kgo.BrokerMetadata, _ net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.mu.meals, meta.NodeID)
}

// setLocked makes limit the bound of fetches, or less where the densest of the last answers asks for it.
func (a *appetite) setLocked(limit int64) {
	for _, m := range a.mu.meals {
		if d := max(m.density, m.ratio()); d > 0 {
			limit = min(limit, int64(float64(a.budget)/d))
		}
	}
	a.mu.limit = max(limit, smallestFetch)
	a.apply(int32(a.mu.limit), a.maxPartition)
}

// ratio is the density of an answer as far as it is unpacked.
func (m meal) ratio() float64 {
	if m.stored == 0 {
		return 0
	}
	return float64(m.memory) / float64(m.stored)
}
