package realtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka"
)

// final returns the position at which the only split of a bounded job ended.
func (j *job) final() kafka.Split {
	j.t.Helper()
	if len(j.finished) != 1 {
		j.t.Fatalf("%d splits finished, want 1", len(j.finished))
	}
	return j.finished[0]
}

func wantOffsets(t *testing.T, j *job, want ...int64) {
	t.Helper()
	if got := offsets(j.records); !slices.Equal(got, want) {
		t.Errorf("read offsets %v, want %v", got, want)
	}
}

func TestAMarkerTakesOneOffsetAndABoundedReaderEndsExactlyBehindIt(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]kgo.TransactionEndTry{"commit": kgo.TryCommit, "abort": kgo.TryAbort} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t)
			topic := c.topic(1, 1)
			c.write(numbered(topic, 0, 2)...)
			c.transact(how, numbered(topic, 2, 3)...)
			s := c.source(topic)
			s.Stop = kafka.Latest()
			j := run(t, s)
			j.end()
			if how == kgo.TryCommit {
				wantOffsets(t, j, 0, 1, 2, 3, 4)
			} else {
				wantOffsets(t, j, 0, 1)
			}
			if at := j.final(); at.Offset != 6 {
				t.Errorf("ended at %d, want 6: behind the marker", at.Offset)
			}
		})
	}
}

func TestCommittedAndAbortedTransactionsThatInterleaveAreToldApart(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	kept := c.begin(time.Minute, numbered(topic, 0, 1)...)                    // 0
	dropped := c.begin(time.Minute, numbered(topic, 0, 1)...)                 // 1
	writeBy(t, kept, numbered(topic, 0, 1)...)                                // 2
	writeBy(t, dropped, numbered(topic, 0, 1)...)                             // 3
	if err := dropped.EndTransaction(t.Context(), kgo.TryAbort); err != nil { // 4
		t.Fatal(err)
	}
	eventually(t, "the marker of the abort", func(ctx context.Context) (bool, error) {
		end, err := c.offset(ctx, topic, last, 0)
		return end == 5, err
	})
	c.write(numbered(topic, 0, 1)...)                                       // 5
	if err := kept.EndTransaction(t.Context(), kgo.TryCommit); err != nil { // 6
		t.Fatal(err)
	}
	c.awaitStable(topic)
	s := c.source(topic)
	s.Stop = kafka.Latest()
	j := run(t, s)
	j.end()
	wantOffsets(t, j, 0, 2, 5)
	s.Isolation = kafka.ReadUncommitted
	j = run(t, s)
	j.end()
	wantOffsets(t, j, 0, 1, 2, 3, 5)
}

func TestAbortedTransactionsStayHiddenInFetchesThatAreCutShort(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	const rounds, each = 10, 50 // several batches to a fetch, and some that are cut off
	for range rounds {
		c.transact(kgo.TryAbort, numbered(topic, 0, each)...)
		c.transact(kgo.TryCommit, numbered(topic, 0, each)...)
	}
	s := c.source(topic)
	s.Stop = kafka.Latest()
	s.FetchMaxBytes, s.FetchMaxPartitionBytes = 2<<10, 2<<10
	j := run(t, s)
	j.end()
	if len(j.records) != rounds*each {
		t.Errorf("read %d records, %d are committed", len(j.records), rounds*each)
	}
}

func TestAJobThatStopsAtTheLatestCommittedRecordEndsWhileATransactionIsOpen(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 2)...)
	open := c.begin(time.Minute, numbered(topic, 2, 2)...)
	c.write(numbered(topic, 4, 2)...)
	s := c.source(topic)
	s.Stop = kafka.Latest()
	j := run(t, s)
	j.end()
	wantOffsets(t, j, 0, 1)
	s.Isolation = kafka.ReadUncommitted
	j = run(t, s)
	j.end()
	wantOffsets(t, j, 0, 1, 2, 3, 4, 5)
	if err := open.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsBehindAHangingTransactionComeWhenTheBrokerHasAbortedIt(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 2)...)
	c.begin(3*time.Second, numbered(topic, 2, 2)...) // and never ended
	c.write(numbered(topic, 4, 2)...)
	j := run(t, c.source(topic))
	j.read(2)
	if end, stable := c.mustOffset(topic, last, 0), c.mustOffset(topic, last, 1); end != 6 || stable != 2 {
		t.Fatalf("the log ends at %d and is stable up to %d, want 6 and 2", end, stable)
	}
	j.read(4)
	wantOffsets(t, j, 0, 1, 4, 5)
	eventually(t, "the marker", func(ctx context.Context) (bool, error) {
		stable, err := c.offset(ctx, topic, last, 1)
		return stable == 7, err
	})
}

func TestARestartBetweenTheRecordsOfATransactionLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.transact(kgo.TryAbort, numbered(topic, 0, 3)...)  // 0..3
	c.transact(kgo.TryCommit, numbered(topic, 3, 3)...) // 4..7
	c.transact(kgo.TryAbort, numbered(topic, 6, 3)...)  // 8..11
	for from := range int64(12) {
		split := c.split(topic, from, 0)
		split.Stop = 12
		j := resume(t, c.source(topic), split)
		j.tellNoMore()
		j.end()
		var want []int64
		for o := max(from, 4); o < 7; o++ {
			want = append(want, o)
		}
		wantOffsets(t, j, want...)
		j.close()
	}
}
