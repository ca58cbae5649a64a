package kafka

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

// says fails the test unless err matches target and its text has all parts.
func says(t *testing.T, err, target error, parts ...string) {
	t.Helper()
	if err == nil || target != nil && !errors.Is(err, target) {
		t.Fatalf("error %v, want one that is %v", err, target)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

// connectionErrorIn finds what is said of the way to the cluster.
func connectionErrorIn(t *testing.T, err error) *ConnectionError {
	t.Helper()
	e, ok := errors.AsType[*ConnectionError](err)
	if !ok {
		t.Fatalf("no ConnectionError in %v", err)
	}
	return e
}

func TestAnOffsetBelowTheLogStartIsAnErrorThatNamesWhatIsLost(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	splits[0].Offset = 3
	if err := b.Cluster().DeleteRecords("orders", 0, 7); err != nil {
		t.Fatal(err)
	}
	u := read(t, s, splits...)
	err := u.fail()
	says(t, err, ErrOffsetOutOfRange, `"orders"`, "partition 0", "offset 3", "begins at 7", "3 to 6", "--restore none")
	says(t, err, sdk.ErrFatal)
	if len(u.out.records) != 0 {
		t.Errorf("read %v before the error", offsetsOf(u.out.records))
	}
}

func TestAnOffsetBeyondTheEndIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 10)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	splits[0].Offset, splits[0].Epoch = 30, NoEpoch
	says(t, read(t, s, splits...).fail(), ErrOffsetOutOfRange, "offset 30", "ends at 10")
}

func TestATruncatedLogIsAnErrorAlsoWhenItHasGrownAgain(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 20)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	splits[0].Offset, splits[0].Epoch = 10, 0
	b.SimulateTruncation("orders", 0, 6)
	u := read(t, s, splits...)
	err := u.fail()
	says(t, err, ErrTruncated, `"orders"`, "partition 0", "records 6 to 9")
	says(t, err, sdk.ErrFatal)
	if len(u.out.records) != 0 {
		t.Errorf("read %v, which replaced what was read before", offsetsOf(u.out.records))
	}
}

func TestWithoutTheEpochATruncationStaysUnseen(t *testing.T) {
	t.Parallel() // this is what the epoch in the split is for
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 20)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	splits[0].Offset, splits[0].Epoch = 10, NoEpoch
	b.SimulateTruncation("orders", 0, 6)
	if got := read(t, s, splits...).records(10); got[0].Offset != 10 {
		t.Fatalf("read from %d", got[0].Offset)
	}
}

func TestARestoredSplitOfATopicCreatedAnewIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	recreate(t, b, "orders")
	err := read(t, s, splits...).fail()
	says(t, err, ErrTopicReplaced, `"orders"`, "created anew", "--restore none")
	says(t, err, sdk.ErrFatal)
}

func TestATopicCreatedAnewWhileItIsReadIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	recreate(t, b, "orders")
	says(t, u.fail(), ErrTopicReplaced)
}

func recreate(t *testing.T, b *kafkatest.Broker, topic string) {
	t.Helper()
	if err := b.Cluster().DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
}

func TestASplitOfAMissingTopicIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	if err := b.Cluster().DeleteTopic("orders"); err != nil {
		t.Fatal(err)
	}
	says(t, read(t, s, splits...).fail(), ErrTopicMissing, `"orders"`, "partition 0")
}

func TestADamagedBatchIsAnErrorThatNamesThePlace(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	c := b.Cluster()
	c.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := r.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, rt := range req.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = rt.Topic, rt.TopicID
			p := kmsg.NewFetchResponseTopicPartition()
			p.HighWatermark, p.LastStableOffset = 5, 5
			p.RecordBatches = append(make([]byte, 16), 9) // a magic number that nobody knows
			p.RecordBatches = append(p.RecordBatches, make([]byte, 64)...)
			topic.Partitions = append(topic.Partitions, p)
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	s := sourceOf(b, "orders")
	says(t, read(t, s, splitsOf(t, s)...).fail(), nil, `"orders"`, "partition 0 at offset 0", "cannot be read")
}

func TestABatchLargerThanTheDecompressionLimitIsAnError(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	client, err := kgo.NewClient(append(b.ClientOptions(), kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(8<<20), kgo.MaxBufferedBytes(64<<20))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: make([]byte, 2<<20)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s := sourceOf(b, "orders")
	s.MaxDecompressBatchBytes = 1 << 20
	var large *kgo.ErrDecompressTooLarge
	if err := read(t, s, splitsOf(t, s)...).fail(); !errors.As(err, &large) {
		t.Fatalf("error %v", err)
	} else {
		says(t, err, nil, `"orders"`, "offset 0", "max_decompress_batch_bytes")
	}
}

func TestALostPermissionIsAnErrorThatNamesTheTopic(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	says(t, u.fail(), ErrLogin, `"orders"`, "READ")
}

func TestOneErrorEndsTheReaderWithoutAHotLoop(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	splits[0].Offset, splits[0].Epoch = 30, NoEpoch
	fetches := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	u := read(t, s, splits...)
	first := u.fail()
	if again := u.fail(); !errors.Is(again, ErrOffsetOutOfRange) {
		t.Errorf("polled again: %v, before: %v", again, first)
	}
	if n := fetches.Hits(); n > 5 {
		t.Errorf("%d fetches for one error", n)
	}
}

func TestAnUnreachableClusterIsWaitedForByARunningReader(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	splits := splitsOf(t, s)
	produce(t, b, numbered("orders", 0, 0, 5)...)
	drop := b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Observe: true, Count: -1})
	b.Cluster().ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("drop the connection"), true
	})
	u := read(t, s, splits...)
	if got := u.records(5); len(got) != 5 {
		t.Fatalf("read %d", len(got))
	}
	if drop.Hits() == 0 {
		t.Error("the reader never asked again")
	}
}
