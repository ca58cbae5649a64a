package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

func sized(sizes ...int) []*kgo.Record {
	records := make([]*kgo.Record, len(sizes))
	for i, n := range sizes {
		records[i] = &kgo.Record{Value: make([]byte, n), Offset: int64(i)}
	}
	return records
}

func TestPayloadBytesAreExactForFewAndForLargeRecords(t *testing.T) {
	t.Parallel()
	if got := payloadBytes(sized(1, 2, 3), 3); got != 6 {
		t.Errorf("few: %d, want 6", got)
	}
	large := make([]int, 100)
	want := 0
	for i := range large {
		large[i] = 2000 + 100*i
		want += large[i]
	}
	if got := payloadBytes(sized(large...), turnSamples); got != int64(want) {
		t.Errorf("large: %d, want %d", got, want)
	}
	even := make([]int, 1000)
	for i := range even {
		even[i] = 100
	}
	if got := payloadBytes(sized(even...), turnSamples); got != 100_000 {
		t.Errorf("even: %d, want 100000", got)
	}
	if got := payloadBytes(nil, turnSamples); got != 0 {
		t.Errorf("none: %d", got)
	}
}

func TestAViewOverwritesEveryField(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(5)
	v := &view{"t-1", []*kgo.Record{{Topic: "t", Partition: 1, Offset: 9, LeaderEpoch: 2, Timestamp: at, Value: []byte("v")}}}
	into := sdk.Record{
		Key: []byte("old"), Value: []byte("old"), Headers: []sdk.Header{{Key: "old"}}, Time: time.Unix(1, 0),
		Split: "old", Topic: "old", Partition: 7, Epoch: 7, Offset: 7, Sequence: "old",
	}
	if !v.Record(0, &into) {
		t.Fatal("no record")
	}
	if into.Key != nil || string(into.Value) != "v" || into.Headers != nil || !into.Time.Equal(at) || into.Split != "t-1" ||
		into.Topic != "t" || into.Partition != 1 || into.Epoch != 2 || into.Offset != 9 || into.Sequence != "" {
		t.Errorf("%+v", into)
	}
}

func TestAViewAllocatesNothingPerRecord(t *testing.T) {
	v := &view{"t-0", []*kgo.Record{{Topic: "t", Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "a"}, {Key: "b"}}}}}
	var into sdk.Record
	if n := testing.AllocsPerRun(100, func() { v.Record(0, &into) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCutKeepsWhatIsBeforeTheStop(t *testing.T) {
	t.Parallel()
	records := []*kgo.Record{{Offset: 3}, {Offset: 5}, {Offset: 9}}
	for _, test := range []struct {
		stop    int64
		want    int
		reached bool
	}{
		{NoStop, 3, false}, {10, 3, false}, {9, 2, true}, {8, 2, true}, {6, 2, true}, {5, 1, true}, {3, 0, true}, {0, 0, true},
	} {
		p := &partition{Split: Split{Stop: test.stop}}
		if got, reached := p.cut(records); len(got) != test.want || reached != test.reached {
			t.Errorf("stop %d: %d records, reached %t; want %d, %t", test.stop, len(got), reached, test.want, test.reached)
		}
	}
}
