package sdk_test

import (
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// A turn that is over stays over, however often it is asked: a reader asks at several places of its loops, and an answer
// that alternated could keep it from ever leaving.
func TestATurnThatIsOverStaysOver(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 1 << 20, Bytes: 1 << 40, Duration: 5 * time.Millisecond}, func() time.Time { return now }, nil)
	for range 100 {
		if turn.ShouldYield() {
			t.Fatal("the turn ends before its time")
		}
	}
	now = now.Add(time.Second)
	asked := 0
	for !turn.ShouldYield() {
		asked++
	}
	if asked > 1000 {
		t.Errorf("it took %d more elements to notice that the time was over", asked)
	}
	for range 1000 {
		if !turn.ShouldYield() {
			t.Fatal("the turn goes on after it was over")
		}
	}
	turn.Restart()
	if turn.ShouldYield() {
		t.Error("a restarted turn is over")
	}
}

// Slow elements are noticed soon: the clock is read more often once time is being used.
func TestSlowElementsEndATurnNearItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 1 << 20, Bytes: 1 << 40, Duration: 100 * time.Millisecond}, func() time.Time { return now }, nil)
	began := now
	for !turn.ShouldYield() {
		now = now.Add(time.Millisecond)
	}
	if took := now.Sub(began); took > 110*time.Millisecond {
		t.Errorf("elements of 1 ms kept a turn of 100 ms going for %s", took)
	}
}

func TestRecordBudgetsEndATurn(t *testing.T) {
	t.Parallel()
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 2, Bytes: 100, Duration: time.Hour}, time.Now, nil)
	turn.Consume(1, 10)
	if turn.ShouldYield() || turn.Records() != 1 || turn.Bytes() != 90 {
		t.Errorf("after one record: %d records and %d bytes are left", turn.Records(), turn.Bytes())
	}
	turn.Consume(1, 200)
	if !turn.ShouldYield() || turn.Records() != 0 || turn.Bytes() != 0 {
		t.Errorf("after the oversize record: %d records and %d bytes are left", turn.Records(), turn.Bytes())
	}
}
