package kafka

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

// coordinator is a working EnumeratorContext with one reader: work runs on goroutines, its results and due tasks on the test's.
type coordinator struct {
	t         testing.TB
	results   chan func()
	scheduled map[string]scheduled
	assigned  map[place]Split
	noMore    bool
	requests  int // of checkpoints
}

type scheduled struct {
	delay time.Duration
	task  func()
}

func newCoordinator(t testing.TB) *coordinator {
	return &coordinator{t: t, results: make(chan func()), scheduled: make(map[string]scheduled), assigned: make(map[place]Split)}
}

func (c *coordinator) Parallelism() int                       { return 1 }
func (c *coordinator) Readers() []sdk.ReaderID                { return []sdk.ReaderID{0} }
func (c *coordinator) SplitCodec() sdk.Codec[Split]           { return Codec{} }
func (c *coordinator) Logger() *slog.Logger                   { return slog.New(slog.DiscardHandler) }
func (c *coordinator) Metrics() sdk.Metrics                   { return sdk.DiscardMetrics }
func (c *coordinator) SendEvent(sdk.ReaderID, sdk.Event) bool { return true }
func (c *coordinator) NoMoreSplits(sdk.ReaderID) error        { c.noMore = true; return nil }
func (c *coordinator) RequestCheckpoint() bool                { c.requests++; return true }
func (c *coordinator) Cancel(key string)                      { delete(c.scheduled, key) }

func (c *coordinator) Assign(_ sdk.ReaderID, splits []Split) error {
	for _, s := range splits {
		c.assigned[s.place()] = s
	}
	return nil
}

func (c *coordinator) Schedule(key string, delay time.Duration, task func()) {
	c.scheduled[key] = scheduled{delay, task}
}

func (c *coordinator) Call(_ string, work func(context.Context) (any, error), done func(any, error), _ sdk.CallOptions) {
	ctx := c.t.Context()
	go func() {
		v, err := work(ctx)
		select {
		case c.results <- func() { done(v, err) }:
		case <-ctx.Done():
		}
	}()
}

// result waits for one call.
func (c *coordinator) result() {
	c.t.Helper()
	select {
	case done := <-c.results:
		done()
	case <-time.After(30 * time.Second):
		c.t.Fatal("no result")
	}
}

// elapse runs what is scheduled.
func (c *coordinator) elapse() {
	for key, s := range c.scheduled {
		delete(c.scheduled, key)
		s.task()
	}
}

func start(t testing.TB, s *Source, c *coordinator, state *sdk.VersionedBytes) sdk.Enumerator[Split] {
	t.Helper()
	e, err := s.NewEnumerator(c, state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	if err := e.AddReader(sdk.ReaderInfo{ID: 0}); err != nil {
		t.Fatal(err)
	}
	return e
}

// checkpoint snapshots and completes.
func checkpoint(t testing.TB, e sdk.Enumerator[Split], id sdk.CheckpointID) sdk.VersionedBytes {
	t.Helper()
	state, err := e.Snapshot(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.(sdk.CheckpointListener).CheckpointComplete(id); err != nil {
		t.Fatal(err)
	}
	return state
}

func TestResolvedPositionsAreCheckpointedBeforeAnythingIsAssigned(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	produce(t, b, numbered("orders", 0, 0, 5)...)
	s := sourceOf(b, "orders")
	s.Start = Latest()
	c := newCoordinator(t)
	e := start(t, s, c, nil)
	c.result()
	if len(c.assigned) != 0 || c.requests == 0 {
		t.Fatalf("assigned %v before a checkpoint, %d asked for", c.assigned, c.requests)
	}
	state, err := e.Snapshot(1)
	if err != nil {
		t.Fatal(err)
	}

	// The process dies before the checkpoint's completion is known; meanwhile records arrive.
	produce(t, b, numbered("orders", 0, 5, 5)...)
	c = newCoordinator(t)
	e = start(t, s, c, &state)
	checkpoint(t, e, 2)
	if got := c.assigned[place{"orders", 0}]; got.Offset != 5 {
		t.Fatalf("assigned %+v, want the offset that was resolved first", got)
	}
}

func TestPartitionsAndTopicsFoundByLaterRoundsAreReadFromTheirBeginning(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{})
	s := sourceOf(b)
	s.Pattern, s.Start = "orders.*", Latest()
	c := newCoordinator(t)
	e := start(t, s, c, nil)
	c.result() // finds nothing, and that is recorded
	state := checkpoint(t, e, 1)

	if err := b.CreateTopic("orders", 2, nil); err != nil {
		t.Fatal(err)
	}
	produce(t, b, numbered("orders", 1, 0, 3)...)
	c = newCoordinator(t) // also across a restart
	e = start(t, s, c, &state)
	c.result()
	checkpoint(t, e, 2)
	if got, ok := c.assigned[place{"orders", 1}]; !ok || got.Offset != 0 || len(c.assigned) != 2 {
		t.Fatalf("assigned %+v", c.assigned)
	}
	if err := b.AddPartitions(t.Context(), "orders", 3); err != nil {
		t.Fatal(err)
	}
	produce(t, b, numbered("orders", 2, 0, 3)...)
	c.elapse()
	c.result()
	checkpoint(t, e, 3)
	if got, ok := c.assigned[place{"orders", 2}]; !ok || got.Offset != 0 || c.noMore {
		t.Fatalf("assigned %+v, no more splits: %t", c.assigned, c.noMore)
	}
}

func TestABoundedJobDiscoversOnce(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 2}})
	s := sourceOf(b, "orders")
	s.Stop = Latest()
	c := newCoordinator(t)
	e := start(t, s, c, nil)
	c.result()
	checkpoint(t, e, 1)
	if !c.noMore || len(c.assigned) != 2 || len(c.scheduled) != 0 {
		t.Fatalf("no more splits: %t, assigned %v, scheduled %v", c.noMore, c.assigned, c.scheduled)
	}
}

func TestDiscoveryThatIsOffLooksOnce(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1}})
	s := sourceOf(b, "orders")
	s.DiscoveryInterval = DiscoveryOff
	c := newCoordinator(t)
	e := start(t, s, c, nil)
	c.result()
	checkpoint(t, e, 1)
	if len(c.assigned) != 1 || len(c.scheduled) != 0 {
		t.Fatalf("assigned %v, scheduled %v", c.assigned, c.scheduled)
	}
}

func TestStateOfAnotherConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	b := broker(t, kafkatest.Options{Topics: map[string]int32{"orders": 1, "payments": 1}})
	s := sourceOf(b, "orders")
	c := newCoordinator(t)
	e := start(t, s, c, nil)
	c.result()
	state := checkpoint(t, e, 1)
	for name, change := range map[string]func(*Source){
		"topics":    func(s *Source) { s.Topics = []string{"payments"} },
		"isolation": func(s *Source) { s.Isolation = ReadUncommitted },
		"stop":      func(s *Source) { s.Stop = Latest() },
	} {
		other := sourceOf(b, "orders")
		change(other)
		_, err := other.NewEnumerator(newCoordinator(t), &state)
		if !errors.Is(err, sdk.ErrIncompatibleState) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		says(t, err, nil, name)
	}
	moved := sourceOf(b, "orders")
	moved.Start, moved.Brokers = Latest(), append([]string{"127.0.0.1:1"}, moved.Brokers...)
	if _, err := moved.NewEnumerator(newCoordinator(t), &state); err != nil {
		t.Errorf("other brokers and another start: %v", err)
	}
}
