package cursor

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// The limit belongs to the token: two readers share it.
func TestWhoIsThrottledMakesEverybodyWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("a", 1)
		w.add("b", 1)
		w.server.Refuse(1, http.StatusTooManyRequests, "7")
		one, other := w.fetcher(Split{Stream: "a"}), w.fetcher(Split{Stream: "b"})
		if got, err := one.Fetch(t.Context()); err != nil || len(got.Chunks) > 0 {
			t.Fatalf("a throttled call brought %+v, error %v", got, err)
		}
		w.want(other, "b", 1, 1)
		w.want(one, "a", 1, 1)
		w.wantGaps(seconds(0, 7, 0))
	})
}

// A fetch is cancelled whenever a split is added. If the wait began anew each time, or ended with it, the API would be asked too early or never.
func TestAWaitOutlivesItsFetch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("a", 1)
		w.server.Refuse(1, http.StatusTooManyRequests, "60")
		w.server.Refuse(1, http.StatusServiceUnavailable, "60")
		f := w.fetcher(Split{Stream: "a"})
		for range 2 {
			if got, err := f.Fetch(t.Context()); err != nil || len(got.Chunks) > 0 {
				t.Fatalf("a refused call brought %+v, error %v", got, err)
			}
			for range 59 {
				w.interrupted(f, time.Second)
			}
		}
		w.want(f, "a", 1, 1)
		w.wantGaps(seconds(0, 60, 60))
	})
}

func TestFailingCallsAreMadeMoreSlowlyAndGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.server.Refuse(1000, http.StatusBadGateway, "")
		_, err := w.fetch(w.fetcher(Split{Stream: "a"}))
		took := time.Since(w.begin)
		if err == nil || !strings.Contains(err.Error(), `stream "a"`) || !strings.Contains(err.Error(), "502") {
			t.Fatalf("error %v", err)
		}
		if errors.Is(err, sdk.ErrFatal) {
			t.Errorf("an outage was told to be fatal: %v", err)
		}
		if took < DefaultGiveUp || took > DefaultGiveUp+maxBackOff {
			t.Errorf("it gave up after %s", took)
		}
		gaps := w.gaps()[1:]
		for i, g := range gaps {
			most := min(minBackOff<<min(i, 20), maxBackOff)
			if g < most/2 || g > most {
				t.Errorf("call %d was made after %s, want %s to %s", i+2, g, most/2, most)
			}
		}
		if n := len(gaps); n < 30 || n > 80 {
			t.Errorf("%d calls in %s", n, took)
		}
	})
}

func TestASuccessEndsTheBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("a", 1)
		f := w.fetcher(Split{Stream: "a"})
		for n := range 3 {
			w.server.Refuse(30, http.StatusInternalServerError, "") // for 6 to 12 minutes
			w.want(f, "a", n+1, n+1)
			w.add("a", 1)
		}
	})
}

// A stream that fails, or is paused, does not keep others from being read.
func TestStreamsDoNotWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("paused", 5)
		w.add("good", 5)
		w.server.Refuse(1, http.StatusBadGateway, "600")
		f := w.fetcher(Split{Stream: "bad"}, Split{Stream: "paused"}, Split{Stream: "good"})
		if err := f.HandleSplits(base.Change[Split]{Paused: []sdk.SplitID{"paused"}}); err != nil {
			t.Fatal(err)
		}
		w.want(f, "good", 1, 5)
		if took := time.Since(w.begin); took > 0 {
			t.Errorf("it took %s", took)
		}
		if err := f.HandleSplits(base.Change[Split]{Paused: []sdk.SplitID{"good"}, Resumed: []sdk.SplitID{"paused"}}); err != nil {
			t.Fatal(err)
		}
		w.want(f, "paused", 1, 5)
	})
}

func TestAnExpiredCursorIsAnErrorThatSaysWhatToDo(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.PageSize = 4
		w.add("a", 10)
		at := w.want(w.fetcher(Split{Stream: "a"}), "a", 1, 8)
		w.server.Forget("a", 9) // the ninth was never read
		f := w.fetcher(at)
		w.fails(f, ErrExpired, `stream "a"`, at.Cursor, "410", "cursor_expired", "empty state directory")
		w.fails(w.fetcher(at), sdk.ErrFatal)
		// Whoever does as it says gets what is left.
		w.want(w.fetcher(Split{Stream: "a"}), "a", 10, 10)
	})
}

// What was forgotten and had been read is no loss.
func TestEventsThatWereReadMayBeForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.PageSize = 4
		w.add("a", 8)
		at := w.want(w.fetcher(Split{Stream: "a"}), "a", 1, 8)
		w.server.Forget("a", 8)
		w.add("a", 2)
		w.want(w.fetcher(at), "a", 9, 10)
	})
}

// A checkpoint falls anywhere, and the job goes on with another page size.
func TestEveryPlaceIsOneToGoOnFrom(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const events = 23
		w.source.PageSize = 10
		w.add("a", events)
		var places []Place
		for f := w.fetcher(Split{Stream: "a"}); len(places) < events; {
			c, err := w.fetch(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range c.Elements {
				places = append(places, e.after)
			}
		}
		w.add("a", 4) // pages that were not full grow
		for _, size := range []int{1, 3, 10, 1000} {
			w.source.PageSize = size
			for i, at := range places {
				w.want(w.fetcher(Split{"a", at}), "a", i+2, events+4)
			}
		}
	})
}

func TestAPageThatHasChangedIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("a", 10)
		c, err := w.fetch(w.fetcher(Split{Stream: "a"}))
		if err != nil {
			t.Fatal(err)
		}
		at := Split{"a", c.Elements[4].after}
		w.server.Remove("a", "2")
		w.fails(w.fetcher(at), ErrAnswer, `event 5 of it was "5" when it was read, and is "6"`, anew)
		for _, id := range []string{"1", "3", "4", "5", "6", "7"} {
			w.server.Remove("a", id)
		}
		w.fails(w.fetcher(at), ErrAnswer, "it has 3 events, and 5 of them were read", anew)
	})
}

func TestAJobThatRunsOnceEndsWhereNothingFollows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Once, w.source.PageSize = true, 4
		w.add("a", 8)
		w.server.Add("empty")
		f := w.fetcher(Split{Stream: "a"}, Split{Stream: "empty"})
		var finished []sdk.SplitID
		events := 0
		for len(f.streams) > 0 {
			got, err := f.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			finished = append(finished, got.Finished...)
			for _, c := range got.Chunks {
				events += len(c.Elements)
			}
		}
		if slices.Sort(finished); events != 8 || !slices.Equal(finished, []sdk.SplitID{"a", "empty"}) {
			t.Errorf("%d events, finished %v", events, finished)
		}
	})
}
