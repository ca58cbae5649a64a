package base

import (
	"errors"
	"sync"
	"testing"
)

func TestHandoverBounds(t *testing.T) {
	t.Parallel()
	h := newHandover[string](2, 100)
	steps := []struct {
		item     string
		bytes    int64
		accepted bool
		first    bool
	}{
		{"oversize into the empty queue", 1000, true, true},
		{"bytes reached", 1, false, false},
	}
	for _, s := range steps {
		if accepted, first := h.offer(s.item, s.bytes); accepted != s.accepted || first != s.first {
			t.Errorf("%s: accepted %t first %t, want %t %t", s.item, accepted, first, s.accepted, s.first)
		}
	}
	if item, ok := h.take(); !ok || item != steps[0].item {
		t.Fatalf("took %q %t", item, ok)
	}
	for i, want := range []bool{true, true, false} {
		if accepted, _ := h.offer("small", 10); accepted != want {
			t.Errorf("item %d of a queue of two: accepted %t, want %t", i, accepted, want)
		}
	}
	select {
	case <-h.room:
	default:
		t.Error("a take rang nobody")
	}
}

func TestHandoverCloseAnswersWhatIsLeftAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	h := newHandover[int](1, 100)
	h.offer(1, 1)
	if !h.leave(2, 1) {
		t.Error("leave was refused by an open queue, although it has no bounds")
	}
	if left := h.close(); len(left) != 2 || left[0] != 1 || left[1] != 2 {
		t.Errorf("left %v, want [1 2]", left)
	}
	accepted, _ := h.offer(3, 1)
	if _, ok := h.take(); accepted || ok || h.leave(4, 1) {
		t.Error("a closed queue took or gave something")
	}
}

// A consumer that looks only when it is told to must see everything: availability is never lost.
func TestHandoverNeverLosesAvailability(t *testing.T) {
	t.Parallel()
	const items = 20_000
	h := newHandover[int](3, 1<<20)
	available := make(chan struct{}, 1)
	var producer sync.WaitGroup
	producer.Go(func() {
		for i := range items {
			for {
				accepted, first := h.offer(i, 1)
				if first {
					select {
					case available <- struct{}{}:
					default:
					}
				}
				if accepted {
					break
				}
				<-h.room
			}
		}
	})
	for next := 0; next < items; {
		<-available
		for {
			i, ok := h.take()
			if !ok {
				break
			}
			if i != next {
				t.Fatalf("took %d, want %d", i, next)
			}
			next++
		}
	}
	producer.Wait()
}

// A loop that polls all the time meets a fetcher at the moment at which it hands over its last batch and fails: what was fetched
// comes first, always.
func TestAFailureNeverOvertakesData(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for range 3000 {
		l := newLoop(t, Config[num, at, at]{
			Fetcher: func() (SplitReader[num, at], error) {
				return &oneShot{got: Fetched[num]{Chunks: []Chunk[num]{{Split: "a", Elements: []num{{"a", 0}}}}}, err: broken}, nil
			},
			Emit: emitNum,
		})
		l.add(at{"a", 0})
		var err error
		for err == nil {
			_, err = l.poll()
		}
		l.inOrder("a", 0, 1)
		l.close()
		if !errors.Is(err, broken) || t.Failed() {
			t.Fatalf("polled: %v", err)
		}
	}
}
