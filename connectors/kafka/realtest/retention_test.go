package realtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/sdk"
)

// says fails the test unless err matches target and its text has all parts.
func says(t *testing.T, err, target error, parts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want one that is %v", err, target)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestDeletedRecordsBehindARestoredPositionAreAnErrorThatNamesTheirRange(t *testing.T) {
	t.Parallel() // the broker's answer says neither where the log begins nor where it ends
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 20)...)
	at := c.split(topic, 5, 0)
	c.deleteRecords(topic, 15)
	j := resume(t, c.source(topic), at)
	says(t, j.fail(), kafka.ErrOffsetOutOfRange, topic, "partition 0", "offset 5", "begins at 15", "5 to 14")
	if len(j.records) != 0 {
		t.Errorf("read %v before the error", offsets(j.records))
	}
}

func TestAfterDeletedRecordsReadingGoesOnAtTheStartOfTheLogWhenThePolicyAllowsIt(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 20)...)
	at := c.split(topic, 5, 0)
	c.deleteRecords(topic, 15)
	s := c.source(topic)
	s.OnLost = kafka.ContinueEarliest
	j := resume(t, s, at)
	j.read(5)
	wantOffsets(t, j, 15, 16, 17, 18, 19)
}

func TestARestoredPositionBeyondTheEndIsAnErrorThatNamesTheEnd(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 10)...)
	says(t, resume(t, c.source(topic), c.split(topic, 30, kafka.NoEpoch)).fail(), kafka.ErrOffsetOutOfRange, "offset 30", "ends at 10")
}

func TestAPositionExactlyAtTheEndIsNoErrorAlsoWhenEverythingWasDeleted(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 10)...)
	at := c.split(topic, 10, 0)
	c.deleteRecords(topic, 10)
	j := resume(t, c.source(topic), at)
	c.write(numbered(topic, 10, 3)...)
	j.read(3)
	wantOffsets(t, j, 10, 11, 12)
}

func TestRecordsDeletedAheadOfAPausedReaderAreAnErrorAndNoJump(t *testing.T) {
	t.Parallel()
	c := shared(t)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 10)...)
	s := c.source(topic)
	s.FetchMaxPartitionBytes, s.FetchMaxBytes = 1<<10, 1<<10
	j := resume(t, s, c.split(topic, 0, 0))
	j.read(10)
	p, ok := j.r.(sdk.Pauser)
	if !ok {
		t.Fatal("the reader cannot pause")
	}
	ids := []sdk.SplitID{j.saved[0].SplitID()}
	if err := p.PauseOrResume(ids, nil); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c.write(numbered(topic, 0, 1)...)
	}
	c.deleteRecords(topic, 25)
	if err := p.PauseOrResume(nil, ids); err != nil {
		t.Fatal(err)
	}
	err := j.fail()
	says(t, err, kafka.ErrOffsetOutOfRange, "begins at 25")
	for i, o := range offsets(j.records) {
		if int64(i) != o {
			t.Fatalf("jumped: read %v", offsets(j.records))
		}
	}
}

func TestRetentionDeletesTheActiveSegmentTooAndAReaderAtTheEndGoesOn(t *testing.T) {
	t.Parallel()
	c := shared(t)
	c.server.RequireOwned(t) // others look every five minutes
	topic := c.topic(1, 1, "retention.ms=1000", "segment.ms=500")
	c.write(numbered(topic, 0, 10)...)
	j := run(t, c.source(topic))
	j.read(10)
	eventually(t, "retention", func(ctx context.Context) (bool, error) {
		start, err := c.offset(ctx, topic, first, 0)
		return start == 10, err
	})
	c.write(numbered(topic, 10, 2)...)
	j.read(12)
	wantOffsets(t, j, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
}
