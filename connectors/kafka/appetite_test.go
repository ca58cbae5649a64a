package kafka

import (
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// diner feeds an appetite with answers of as many bytes as it asks for, and at least one batch.
type diner struct {
	*appetite
	fetch, partition int64
}

const oneBatch = 1000

func newDiner(maxFetch, maxPartition int) *diner {
	s := &Source{FetchMaxBytes: maxFetch, FetchMaxPartitionBytes: maxPartition}
	d := &diner{appetite: newAppetite(s)}
	d.apply = func(fetch, partition int32) { d.fetch, d.partition = int64(fetch), int64(partition) }
	d.mu.Lock()
	d.setLocked(d.mu.limit)
	d.mu.Unlock()
	return d
}

// eat answers from a broker, unpacked to that many bytes of memory a byte, in batches.
func (d *diner) eat(broker int32, read int64, density float64) (memory int64) {
	meta := kgo.BrokerMetadata{NodeID: broker}
	d.OnBrokerRead(meta, int16(kmsg.Fetch), int(read), 0, 0, nil)
	const batches = 8
	for range batches {
		n := int64(float64(read)*density) / batches
		d.OnFetchBatchRead(meta, "t", 0, kgo.FetchBatchMetrics{UncompressedBytes: int(n), CompressedBytes: int(read)/batches - batchHeader})
		memory += n
	}
	return memory
}

func TestAppetiteGrowsToWhatIsConfigured(t *testing.T) {
	d := newDiner(16<<20, 256<<10)
	if d.fetch != 16<<20 || d.partition != 256<<10 {
		t.Fatalf("begins with %d, %d", d.fetch, d.partition)
	}
	d.eat(0, oneBatch, 1e9)
	if d.fetch != smallestFetch {
		t.Fatalf("%d after the heaviest of answers", d.fetch)
	}
	for range 9 {
		d.eat(0, max(d.fetch, oneBatch), 1.1)
	}
	if d.fetch != 16<<20 || d.partition != 256<<10 {
		t.Errorf("%d, %d after light answers", d.fetch, d.partition)
	}
	d.eat(0, 100, 0) // an answer without records says nothing
	if d.fetch != 16<<20 {
		t.Errorf("%d after an empty answer", d.fetch)
	}
}

func TestAppetiteStaysWithinItsBudget(t *testing.T) {
	d := newDiner(16<<20, 256<<10)
	d.eat(0, d.fetch, 300) // nobody knows before
	for range 50 {
		if memory := d.eat(0, max(d.fetch, oneBatch), 300); memory > d.budget {
			t.Fatalf("an answer of %d bytes took %d of memory", d.fetch, memory)
		}
	}
	if d.fetch < d.budget/300/2 {
		t.Errorf("%d although %d would do", d.fetch, d.budget/300)
	}
}

// A bounded reader asks for the first batch of a partition now and then, outside of what the client fetches.
func TestAppetiteIgnoresQuestions(t *testing.T) {
	d := newDiner(16<<20, 256<<10)
	d.eat(0, d.fetch, 300)
	for range 10 {
		before := d.fetch
		d.OnBrokerRead(kgo.BrokerMetadata{}, int16(kmsg.Fetch), int(before), 0, 0, nil)
		if d.fetch > before {
			t.Fatalf("from %d to %d, after an answer without batches", before, d.fetch)
		}
	}
}

// A topic becomes dense: what is seen of the first answer binds the next one. Light answers of another broker do not loosen it while the
// dense ones go on, and do once that broker is gone.
func TestAppetiteOfSeveralBrokers(t *testing.T) {
	d := newDiner(16<<20, 16<<20)
	for range 8 {
		d.eat(0, max(d.fetch, oneBatch), 1)
		d.eat(1, max(d.fetch, oneBatch), 1)
	}
	d.eat(0, d.fetch, 100)
	for range 8 {
		if memory := d.eat(0, d.fetch, 100); memory > d.budget {
			t.Fatalf("%d of memory", memory)
		}
		d.eat(1, d.fetch, 1)
	}
	d.OnBrokerDisconnect(kgo.BrokerMetadata{NodeID: 0}, nil)
	for range 4 {
		d.eat(1, d.fetch, 1)
	}
	if d.fetch != 16<<20 {
		t.Errorf("%d, without the broker of the dense answers", d.fetch)
	}
}

// With batches that are each too much, there is one to an answer.
func TestAppetiteForOneBatchAtATime(t *testing.T) {
	d := newDiner(1<<20, 1<<20)
	for range 5 {
		d.eat(0, max(d.fetch, 100<<10), 1e6)
		if d.fetch > 100<<10 {
			t.Errorf("asks for %d bytes where one batch has 100 KiB", d.fetch)
		}
	}
}

// observer adds up what each answer became, as the client says.
type observer struct {
	mu                     sync.Mutex
	answers, records, most int
}

func (o *observer) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if kmsg.Key(key) == kmsg.Fetch {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.records > 0 { // a look for what is left of a partition is no answer of the client's
			o.answers++
		}
		o.records = 0
	}
}

func (o *observer) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records += m.NumRecords
	if o.answers > 0 { // what the topic is like is known after the first
		o.most = max(o.most, o.records)
	}
}

// A fetch of a megabyte may hold a million records. The second one holds no more than there is room for.
func TestMemoryOfCompressedTopics(t *testing.T) {
	for _, codec := range []kgo.CompressionCodec{kgo.ZstdCompression(), kgo.GzipCompression(), kgo.Lz4Compression(), kgo.SnappyCompression()} {
		const perBatch, want = 1000, 600_000
		b := broker(t, kafkatest.Options{Topics: map[string]int32{"t": 1}, Extra: []kfake.Opt{
			kfake.SyntheticFetch(kfake.SyntheticBatch{Records: perBatch, RecordBytes: 1, Compression: codec}),
		}})
		seen := &observer{}
		s := sourceOf(b, "t")
		s.FetchMaxBytes, s.FetchMaxPartitionBytes = 256<<10, 256<<10
		s.Client = []kgo.Opt{kgo.WithHooks(seen)}
		r := read(t, s, Split{Topic: "t", Epoch: NoEpoch, Stop: NoStop})
		if got := len(r.records(want)); got < want {
			t.Errorf("%v: %d records", codec, got)
		}
		seen.mu.Lock()
		most := seen.most
		seen.mu.Unlock()
		if limit := unpacked*s.FetchMaxBytes/memoryOfRecord + perBatch; most > limit {
			t.Errorf("%v: %d records in one fetch, which takes %d bytes of memory; at most %d", codec, most, most*memoryOfRecord, limit)
		}
	}
}
