package kinesis

import (
	"reflect"
	"testing"
	"time"
)

// In a job without checkpoints a coordinator begins anew without a state, and a reader that dies then gives its shards back before the first look
// at the stream is done.
func TestAShardThatIsReturnedBeforeTheFirstLookKeepsItsStopAndItsStream(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(s *Source) { s.Stop = Latest() }, func(w *world) {
		w.never = true
		w.put(0, 10)
		w.start()
		if !w.until(time.Minute, func() bool { return len(w.held()) == 1 }) {
			t.Fatal("nothing was assigned")
		}
		before, err := w.tasks[0].r.Snapshot(1)
		w.must(err)
		w.kill()

		w.run(time.Hour)
		w.start()
		w.must(w.enum.ReturnSplits(before))
		after, err := w.tasks[0].r.Snapshot(1)
		w.must(err)
		if !reflect.DeepEqual(after, before) {
			t.Errorf("returned as %+v, assigned again as %+v", before, after)
		}
		if !w.until(time.Minute, func() bool { return w.noMore > 0 }) {
			t.Errorf("the job did not end, error %v", w.problem())
		}
		w.each(w.all(), 0, 10)
	})
}
