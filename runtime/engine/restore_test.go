package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/sdk"
)

// A job that is cancelled at random moments and started again, each time with another parallelism, loses and repeats
// nothing. The source has faults of its own meanwhile.
func TestRestartsWithChangingParallelismLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []exchange.Kind{exchange.Forward, exchange.Rebalance, exchange.Keyed} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/%d", kind, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 1))
					cfg := fake.Config{
						Splits: 7, RecordsPerSplit: 2000, KeyCount: 11, ChunkSize: 40, Durable: seed%2 == 0, Copied: seed%3 != 0,
						Faults: fake.Faults{FetchLatency: time.Millisecond, Script: []fake.Fault{
							{Kind: fake.FailEmit, Split: 1, Record: 300, Times: 3}, {Kind: fake.FailFetch, Split: 5, Record: 900, Times: 2},
						}},
					}
					src, l, store := source(t, cfg), newLedger(), checkpoint.NewMemory()
					for life := 0; ; life++ {
						h, err := engine.Start(t.Context(), engine.Job{
							Name: "lives", Parallelism: 1 + rng.IntN(9), Source: engine.From(src), Sink: l, Exchange: kind,
							Checkpoint: engine.Checkpoint{Interval: 4 * time.Millisecond, Storage: store}, Options: quick(), Logger: logger(t),
						})
						if err != nil {
							t.Fatal(err)
						}
						if life < 40 {
							time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) //nolint:forbidigo // the clock of the bubble
							switch rng.IntN(4) {
							case 0:
								h.Stop()
							default:
								h.Cancel()
							}
						}
						res, err := h.Wait(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if res.Outcome == engine.Finished {
							if res.Records != 14_000 {
								t.Errorf("the job says it committed %d records", res.Records)
							}
							break
						}
					}
					l.exactlyOnce(t, cfg, 7, kind == exchange.Forward)
					h, err := engine.Start(t.Context(), engine.Job{
						Name: "lives", Source: engine.From(src), Sink: l, Checkpoint: engine.Checkpoint{Storage: store}, Options: quick(),
					})
					if err != nil {
						t.Fatal(err)
					}
					if res, err := h.Wait(t.Context()); err != nil || res.Outcome != engine.AlreadyFinished {
						t.Errorf("running a finished job again: %+v, %v", res, err)
					}
				})
			})
		}
	}
}

func TestSavepointWhileRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpoint.NewMemory()
		h, err := engine.Start(t.Context(), engine.Job{
			Name: "savepoint", Source: engine.From(source(t, fake.Config{RecordsPerSecond: 1000})), Sink: newLedger(),
			Checkpoint: engine.Checkpoint{Interval: engine.Never, Storage: store}, Options: quick(), Logger: logger(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		id, err := h.Savepoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m, info, err := store.Read(t.Context(), id); err != nil || !info.Savepoint || m.Records == 0 {
			t.Errorf("savepoint %d: %+v, %v", id, info, err)
		}
		h.Cancel()
		if _, err := h.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Savepoint(t.Context()); !errors.Is(err, engine.ErrEnded) {
			t.Errorf("savepoint of an ended job: %v", err)
		}
	})
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job := func() engine.Job {
		return engine.Job{
			Name: "orders", Source: engine.From(source(t, fake.Config{RecordsPerSplit: 10})), Sink: newLedger(),
			Checkpoint: engine.Checkpoint{Dir: dir}, Logger: logger(t),
		}
	}
	if err := engine.Run(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*engine.Job)
		want   error
	}{
		"another job": {func(j *engine.Job) { j.Name = "payments" }, checkpoint.ErrOtherJob},
		"lane b":      {func(j *engine.Job) { o := engine.DefaultOptions(); o.Lane = "b"; j.Options = &o }, engine.ErrLane},
		"kill switch": {func(j *engine.Job) { o := engine.DefaultOptions(); o.KillSwitch = true; j.Options = &o }, engine.ErrLane},
		"allowlist":   {func(j *engine.Job) { o := engine.DefaultOptions(); o.Allowlist = []string{"kafka"}; j.Options = &o }, engine.ErrLane},
		"another capability": {func(j *engine.Job) {
			j.Source = engine.From(&relabelled{source(t, fake.Config{}), "2.0.0"})
		}, sdk.ErrIncompatibleState},
	} {
		t.Run(name, func(t *testing.T) {
			j := job()
			c.change(&j)
			if err := engine.Run(t.Context(), j); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// relabelled is a source of another major version.
// unproven has no recorded pass of the conformance suite.
type unproven struct{ *fake.Source }

func (u unproven) Capability() sdk.Capability {
	c := u.Source.Capability()
	c.Suite = 0
	return c
}

// A source runs in the managed lane when it records a pass of the suite, or when somebody has named it. What it records is no part of what
// a checkpoint depends on.
func TestASourceWithoutAPassOfTheSuiteRunsWhereTheAllowlistNamesIt(t *testing.T) {
	dir, output := t.TempDir(), newLedger()
	job := func(s sdk.Source[fake.Split], allowed ...string) engine.Job {
		o := engine.DefaultOptions()
		o.Allowlist = allowed
		return engine.Job{
			Name: "orders", Source: engine.From(s), Sink: output, Options: &o,
			Checkpoint: engine.Checkpoint{Dir: dir}, Logger: logger(t),
		}
	}
	proven := source(t, fake.Config{RecordsPerSplit: 10})
	err := engine.Run(t.Context(), job(unproven{proven}))
	if !errors.Is(err, engine.ErrLane) || !strings.Contains(err.Error(), "runtime.allowlist") {
		t.Errorf("got %v", err)
	}
	for _, j := range []engine.Job{job(unproven{proven}, "fake"), job(proven)} {
		if err := engine.Run(t.Context(), j); err != nil {
			t.Error(err)
		}
	}
}

type relabelled struct {
	*fake.Source
	version string
}

func (r *relabelled) Capability() sdk.Capability {
	c := r.Source.Capability()
	c.Version = r.version
	return c
}

func TestASecondJobOnTheSameDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	job := engine.Job{
		Name: "orders", Source: engine.From(source(t, fake.Config{RecordsPerSecond: 10})), Sink: newLedger(), Checkpoint: engine.Checkpoint{Dir: dir},
	}
	h, err := engine.Start(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Start(t.Context(), job); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("got %v", err)
	}
	h.Cancel()
	if _, err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A finished job that was changed is not the finished job: what does not fit its state is said, not ignored.
func TestAFinishedJobDoesNotIgnoreItsChangedSource(t *testing.T) {
	t.Parallel()
	store := checkpoint.NewMemory()
	src := &choosy{Source: source(t, fake.Config{RecordsPerSplit: 10})}
	job := engine.Job{Name: "finished", Source: engine.From(src), Sink: newLedger(), Checkpoint: engine.Checkpoint{Storage: store}}
	if err := engine.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if err := engine.Run(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	src.refuse = true
	if err := engine.Run(t.Context(), job); !errors.Is(err, sdk.ErrIncompatibleState) {
		t.Errorf("got %v", err)
	}
}

// choosy refuses saved state on command, as a source whose configuration was changed does.
type choosy struct {
	*fake.Source
	refuse bool
}

func (c *choosy) NewEnumerator(ctx sdk.EnumeratorContext[fake.Split], state *sdk.VersionedBytes) (sdk.Enumerator[fake.Split], error) {
	if c.refuse && state != nil {
		return nil, fmt.Errorf("%w: another topic", sdk.ErrIncompatibleState)
	}
	return c.Source.NewEnumerator(ctx, state)
}

// A process may die after its final checkpoint is durable and before the last part is committed. The next start finds a job
// that has finished, and yet has to commit.
func TestAFinishedJobIsCommittedByItsNextStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := fake.Config{Splits: 3, RecordsPerSplit: 100}
		l, store := newLedger(), checkpoint.NewMemory()
		job := func() engine.Job {
			return engine.Job{
				Name: "final", Parallelism: 2, Source: engine.From(source(t, cfg)), Sink: l, Options: quick(),
				Checkpoint: engine.Checkpoint{Interval: engine.Never, Storage: store}, Logger: logger(t),
			}
		}
		dead := errors.New("the process has died")
		l.onCommit = func(int) error { return dead }
		h, err := engine.Start(t.Context(), job())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		if m, _, err := store.Latest(t.Context()); err != nil || m.Records != 300 {
			t.Fatalf("no final checkpoint: %v", err)
		}
		h.Cancel()
		if _, err := h.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := engine.Run(t.Context(), job()); !errors.Is(err, dead) {
			t.Errorf("the commit fails, and the start says %v", err)
		}
		l.onCommit = nil
		if res := run(t, job()); res.Outcome != engine.AlreadyFinished || res.Records != 300 {
			t.Errorf("result %+v", res)
		}
		l.exactlyOnce(t, cfg, 3, true)
	})
}
