package kinesistest

import (
	"fmt"
	"sort"
	"time"
)

// record is one that was written. It never changes.
type record struct {
	index    uint64
	sequence string
	arrival  time.Time
	key      *string // nil when it was written without
	data     []byte
}

func (r *record) bytes() int {
	n := len(r.data)
	if r.key != nil {
		n += len(*r.key)
	}
	return n
}

func (r *record) wire() wireRecord {
	return wireRecord{SequenceNumber: r.sequence, ApproximateArrivalTimestamp: momentOf(r.arrival), Data: r.data, PartitionKey: r.key}
}

// shard is one of a stream. The server's lock guards it.
type shard struct {
	id       string
	number   uint32
	keys     hashRange
	parents  []*shard // of which all but the ids may be gone
	children []*shard
	created  time.Time
	seconds  int64 // that its sequence numbers begin with, see sequence
	closed   time.Time
	ending   string // sequence number, empty while it is open
	records  []*record
	grown    chan struct{} // closed and replaced when there is more to read, or it closed

	reads     readMeter
	writes    rate
	iterators rate
}

func shardID(number uint32) string { return fmt.Sprintf("shardId-%012d", number) }

func (sh *shard) open() bool { return sh.ending == "" }

// wake tells those who wait for more.
func (sh *shard) wake() {
	close(sh.grown)
	sh.grown = make(chan struct{})
}

// sequence is the number of an index in this shard at a time.
func (sh *shard) sequence(index uint64, at time.Time) string {
	return sequence{created: sh.seconds, index: index, written: seconds(at), shard: sh.number}.String()
}

// trim forgets records that are older than keep and returns their bytes. Records go in order: one that arrived late holds back those behind it.
func (sh *shard) trim(now time.Time, keep time.Duration) (freed int64) {
	n := 0
	for n < len(sh.records) && now.Sub(sh.records[n].arrival) >= keep {
		n++
	}
	return sh.forget(n)
}

// forget drops the oldest n records and returns their bytes.
func (sh *shard) forget(n int) (freed int64) {
	for _, r := range sh.records[:n] {
		freed += int64(r.bytes())
	}
	clear(sh.records[:n])
	sh.records = sh.records[n:]
	return freed
}

// gone reports that nothing is left of a closed shard.
func (sh *shard) gone(now time.Time, keep time.Duration) bool {
	return !sh.open() && now.Sub(sh.closed) >= keep
}

// from is the place in records of the first one whose index is at least the given one.
func (sh *shard) from(index uint64) int {
	return sort.Search(len(sh.records), func(i int) bool { return sh.records[i].index >= index })
}

// page is what one call reads.
type page struct {
	records []*record
	bytes   int
	next    uint64 // index to go on from
	behind  time.Duration
	ended   bool // the shard is closed and read
}

// read returns records from an index on, within the bounds but at least one if there is any.
func (sh *shard) read(now time.Time, index uint64, maxRecords, maxBytes int) page {
	p := page{next: index}
	left := sh.records[sh.from(index):]
	for len(left) > 0 && len(p.records) < maxRecords {
		r := left[0]
		if n := r.bytes(); len(p.records) > 0 && p.bytes+n > maxBytes {
			break
		}
		p.records, p.bytes, p.next = append(p.records, r), p.bytes+r.bytes(), r.index+1
		left = left[1:]
	}
	if len(left) > 0 {
		p.behind = max(now.Sub(left[0].arrival), time.Millisecond)
	}
	p.ended = len(left) == 0 && !sh.open()
	return p
}

func (sh *shard) wire() wireShard {
	w := wireShard{
		ShardId: sh.id, HashKeyRange: sh.keys.wire(),
		SequenceNumberRange: &wireSequenceRange{StartingSequenceNumber: sh.sequence(0, sh.created), EndingSequenceNumber: sh.ending},
	}
	if len(sh.parents) > 0 {
		w.ParentShardId = sh.parents[0].id
	}
	if len(sh.parents) > 1 {
		w.AdjacentParentShardId = sh.parents[1].id
	}
	return w
}

func (sh *shard) wireChildren() []wireChild {
	var all []wireChild
	for _, c := range sh.children {
		w := wireChild{ShardId: c.id, HashKeyRange: c.keys.wire()}
		for _, p := range c.parents {
			w.ParentShards = append(w.ParentShards, p.id)
		}
		all = append(all, w)
	}
	return all
}
