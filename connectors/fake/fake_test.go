package fake

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

var update = flag.Bool("update", false, "write golden files of the newest version anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lent is a working ReaderContext with a one-slot doorbell.
type lent struct{ doorbell chan struct{} }

func (l lent) Reader() sdk.ReaderID     { return 0 }
func (l lent) Parallelism() int         { return 1 }
func (l lent) Logger() *slog.Logger     { return slog.New(slog.DiscardHandler) }
func (l lent) Metrics() sdk.Metrics     { return sdk.DiscardMetrics }
func (l lent) RequestSplit()            {}
func (l lent) SendEvent(sdk.Event) bool { return true }
func (l lent) NotifyAvailable() {
	select {
	case l.doorbell <- struct{}{}:
	default:
	}
}

// batchOutput collects what is emitted as an engine does.
type batchOutput struct {
	turn     *sdk.Turn
	batch    sdk.Batch
	finished []Split
}

func (o *batchOutput) Emit(rec sdk.Record) bool {
	o.batch.Append(&rec)
	o.turn.Consume(1, rec.Size())
	return true
}

func (o *batchOutput) EmitView(v sdk.View, from int) (int, bool) {
	n := min(v.Len()-from, o.turn.Records())
	o.batch.AppendView(v, from, from+n)
	o.turn.Consume(n, v.Bytes(from, from+n))
	return n, true
}

func (o *batchOutput) FinishSplit(final sdk.Split) { o.finished = append(o.finished, final.(Split)) }

// attempt is one life of a reader, driven by the test.
type attempt struct {
	t      *testing.T
	ctx    lent
	reader *Reader
	out    *batchOutput
	polls  int
}

func newAttempt(t *testing.T, s *Source, splits ...Split) *attempt {
	t.Helper()
	a := &attempt{t: t, ctx: lent{make(chan struct{}, 1)}}
	r, err := s.NewReader(a.ctx)
	if err != nil {
		t.Fatal(err)
	}
	a.reader = r.(*Reader)
	a.out = &batchOutput{turn: sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)}
	if err := errors.Join(a.reader.Open(t.Context()), a.reader.AddSplits(splits), a.reader.NoMoreSplits()); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *attempt) poll() (sdk.PollStatus, error) {
	a.polls++
	a.out.turn.Restart()
	return a.reader.Poll(a.out.turn, a.out)
}

// run polls until the end, an error, or until the record count is reached.
func (a *attempt) run(records int) error {
	for a.out.batch.Len() < records {
		status, err := a.poll()
		switch {
		case err != nil:
			return err
		case status == sdk.EndOfInput:
			return nil
		case status == sdk.NothingAvailable && a.out.batch.Len() < records:
			<-a.ctx.doorbell
		}
	}
	return nil
}

func (a *attempt) close() {
	a.t.Helper()
	if err := a.reader.Close(); err != nil {
		a.t.Error(err)
	}
}

// verify fails unless exactly the records from..to-1 of each split are there, in order and as Config.Record makes them.
func (a *attempt) verify(cfg Config, from, to map[int]int64) {
	a.t.Helper()
	next := make(map[int]int64, len(from))
	maps.Copy(next, from)
	for rec := range a.out.batch.All() {
		split, i := int(rec.Partition), rec.Offset
		if !cfg.Shared {
			var err error
			if split, i, err = ParseValue(rec.Value); err != nil {
				a.t.Fatal(err)
			}
		}
		if i != next[split] {
			a.t.Fatalf("split %d: record %d, want %d", split, i, next[split])
		}
		if want := cfg.Record(split, i); !reflect.DeepEqual(*rec, want) {
			a.t.Fatalf("record differs:\n got %+v\nwant %+v", *rec, want)
		}
		next[split]++
	}
	for split, end := range to {
		if next[split] != end {
			a.t.Errorf("split %d: up to %d, want %d", split, next[split], end)
		}
	}
}

func source(t *testing.T, cfg Config) *Source {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRecordsAreAFunctionOfSeedSplitAndIndex(t *testing.T) {
	for _, cfg := range []Config{
		{Seed: 1, RecordsPerSplit: 1000, KeyCount: 7, ChunkSize: 100, Copied: true},
		{Seed: 1, RecordsPerSplit: 1000, KeyCount: 7, ChunkSize: 33},
		{Seed: 2, RecordsPerSplit: 1000, RecordSize: 5000, Fetchers: 3, RecordsPerSecond: 10_000},
		{Seed: 3, RecordsPerSplit: 1000, RecordSize: 1, Fetchers: 2, Copied: true},
		{Seed: 4, RecordsPerSplit: 1000, KeyCount: 9, Shared: true},
	} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAttempt(t, source(t, cfg), Split{0, 0, 1000}, Split{1, 900, 1000}, Split{2, 17, 1000})
				if err := a.run(1 << 30); err != nil {
					t.Fatal(err)
				}
				a.verify(cfg, map[int]int64{1: 900, 2: 17}, map[int]int64{0: 1000, 1: 1000, 2: 1000})
				if len(a.out.finished) != 3 {
					t.Errorf("finished %v, want three", a.out.finished)
				}
				a.close()
			})
		})
	}
	if a, b := (Config{Seed: 1}).Record(0, 0), (Config{Seed: 2}).Record(0, 0); bytes.Equal(a.Value, b.Value) {
		t.Error("the seed changes nothing")
	}
}

// A fault strikes at its record, so many times over all attempts, and what comes before it is delivered.
func TestScriptedFailures(t *testing.T) {
	for _, view := range []bool{false, true} {
		for _, kind := range []Kind{FailFetch, PanicFetch, FailEmit, PanicEmit} {
			t.Run(fmt.Sprintf("%s view=%t", kind, view), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := Config{RecordsPerSplit: 500, Copied: !view, Faults: Faults{Script: []Fault{{Kind: kind, Split: 0, Record: 137, Times: 2}}}}
					s := source(t, cfg)
					splits := []Split{{0, 0, 500}}
					for try := range 3 {
						a := newAttempt(t, s, splits...)
						from, to := splits[0].Next, int64(137)
						err := guarded(func() error { return a.run(1 << 30) })
						if try == 2 {
							to = 500
						}
						if failed := err != nil; failed != (try < 2) {
							t.Errorf("try %d: %v", try, err)
						}
						a.verify(cfg, map[int]int64{0: from}, map[int]int64{0: to})
						splits, err = a.reader.Snapshot(1)
						if err != nil {
							t.Fatal(err)
						}
						a.close()
					}
					if n := len(s.Triggered()); n != 2 {
						t.Errorf("%d faults were told of, want 2", n)
					}
				})
			})
		}
	}
}

// guarded is what an engine does about panics.
func guarded(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return run()
}

func TestStuckFetchObeysItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source(t, Config{Faults: Faults{Script: []Fault{{Kind: StuckFetch, Record: 100, Times: Always}}}})
		a := newAttempt(t, s, Split{})
		if err := a.run(100); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if status, err := a.poll(); status != sdk.NothingAvailable || err != nil {
			t.Errorf("%s %v, want NothingAvailable", status, err)
		}
		if got := <-s.Triggered(); got.Kind != StuckFetch {
			t.Errorf("triggered %v", got)
		}
		started := time.Now()
		a.close()
		if time.Since(started) != 0 {
			t.Error("close waited")
		}
	})
}

func TestDeafFetchIsAbandonedAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source(t, Config{CloseTimeout: time.Second, Faults: Faults{Script: []Fault{{Kind: DeafFetch, Record: 0}}}})
		a := newAttempt(t, s, Split{})
		<-s.Triggered()
		if err := a.reader.Close(); !errors.Is(err, sdk.ErrClosed) {
			t.Errorf("close: %v, want that the fetch was abandoned", err)
		}
		s.Release()
		s.Release()
	})
}

func TestStuckPollEndsAtAWakeup(t *testing.T) {
	for _, kind := range []Kind{StuckPoll, DeafPoll} {
		for _, view := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Copied: !view, Faults: Faults{Script: []Fault{{Kind: kind, Record: 10}}}}
				s := source(t, cfg)
				a := newAttempt(t, s, Split{})
				synctest.Wait()
				returned := make(chan sdk.PollStatus)
				a.reader.Wakeup() // before the turn: does not count
				go func() {
					if _, err := a.poll(); err != nil { // the early, empty one
						t.Error(err)
					}
					status, err := a.poll()
					if err != nil {
						t.Error(err)
					}
					returned <- status
				}()
				<-s.Triggered()
				synctest.Wait()
				select {
				case <-returned:
					t.Fatal("the poll did not block")
				default:
				}
				if kind == StuckPoll {
					a.reader.Wakeup()
				} else {
					a.reader.Wakeup()
					synctest.Wait()
					s.Release()
				}
				if status := <-returned; status != sdk.MoreAvailable {
					t.Errorf("%s after the poll was freed, want MoreAvailable", status)
				}
				if err := a.run(100); err != nil {
					t.Fatal(err)
				}
				a.verify(cfg, nil, nil)
				a.close()
			})
		}
	}
}

// Lies about availability cost turns and lose nothing.
func TestLyingAvailability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{RecordsPerSplit: 1000, ChunkSize: 10, Faults: Faults{
			FalseRings: time.Millisecond, EmptyTurns: 3, FetchLatency: 20 * time.Millisecond,
		}}
		a := newAttempt(t, source(t, cfg), Split{End: 1000})
		if err := a.run(1 << 30); err != nil {
			t.Fatal(err)
		}
		a.verify(cfg, nil, map[int]int64{0: 1000})
		if a.polls < 1500 {
			t.Errorf("%d polls in two seconds with a false ring each millisecond", a.polls)
		}
		a.close()
		synctest.Wait()
		select { // one ring may be left
		case <-a.ctx.doorbell:
		default:
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		if len(a.ctx.doorbell) > 0 {
			t.Error("rings after Close")
		}
	})
}

func TestHooksHoldFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source(t, Config{ChunkSize: 10})
		permits := make(chan struct{})
		s.Hooks.BeforeFetch = func(ctx context.Context, _ int, _ int64) error {
			select {
			case <-permits:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		a := newAttempt(t, s, Split{})
		for i := 1; i <= 3; i++ {
			permits <- struct{}{}
			synctest.Wait()
			if _, err := a.poll(); err != nil {
				t.Fatal(err)
			}
			if n := a.out.batch.Len(); n != i*10 {
				t.Errorf("%d records after %d permits", n, i)
			}
		}
		a.close()
	})
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := source(t, Config{Splits: 2, LaterSplits: []int{1, 3}, RecordsPerSplit: 9, Faults: Faults{DiscoveryFailures: 1}})
	if _, err := s.discover(t.Context(), base.Round{First: true}); !errors.Is(err, ErrFault) {
		t.Errorf("first discovery: %v, want the scripted failure", err)
	}
	known := 0
	for round, want := range []int{2, 3, 6, 6} {
		splits, err := s.discover(t.Context(), base.Round{First: round == 0, Known: func(id sdk.SplitID) bool {
			n, err := numberOf(id)
			return err == nil && n < known
		}})
		if err != nil || len(splits) != want {
			t.Fatalf("round %d: %v (%v), want %d splits", round, splits, err, want)
		}
		known = want
		if splits[1] != (Split{Number: 1, End: 9}) {
			t.Errorf("split 1 is %+v", splits[1])
		}
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Shared: true, RecordSize: maxSharedSize + 1, KeyCount: maxSharedKeys + 1}); err == nil ||
		!strings.Contains(err.Error(), "RecordSize") || !strings.Contains(err.Error(), "KeyCount") {
		t.Errorf("bounds of Shared: %v", err)
	}
	_, err := New(Config{Splits: -1, RecordSize: MaxRecordSize + 1, ChunkSize: -1, Faults: Faults{Script: []Fault{{Kind: 99, Times: -2}}}})
	for _, name := range []string{"Splits", "RecordSize", "ChunkSize", "Script[0].Kind", "Script[0].Times"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("does not name %s: %v", name, err)
		}
	}
	if err := source(t, Config{}).Capability().Managed(); err != nil {
		t.Error(err)
	}
}

func TestSplitGoldenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "testdata", "splits", "fake-v1.bin")
	want := Split{Number: 300, Next: 321_007, End: 1 << 40}
	data, err := splitCodec{}.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, golden) {
		t.Errorf("version 1 is published, its encoding must not change: got %x, want %x", data, golden)
	}
	if got, err := (splitCodec{}).Decode(1, golden); err != nil || got != want {
		t.Errorf("decoded %+v (%v), want %+v", got, err, want)
	}
	if _, err := (splitCodec{}).Decode(2, golden); err == nil {
		t.Error("an unknown version was decoded")
	}
	for _, bad := range [][]byte{nil, golden[:len(golden)-1], append(slices.Clone(golden), 0), {0x80, 0, 1, 1}} {
		if _, err := (splitCodec{}).Decode(1, bad); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%x: %v, want ErrCorrupt", bad, err)
		}
	}
}

func TestPositionAfterIsWhereAReaderGoesOn(t *testing.T) {
	t.Parallel()
	s := source(t, Config{RecordsPerSplit: 10})
	rec := s.cfg.Record(3, 7)
	at, err := s.PositionAfter(&rec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.SplitCodec().Decode(at.Version, at.Data)
	if want := (Split{Number: 3, Next: 8, End: 10}); err != nil || got != want {
		t.Errorf("position %+v (%v), want %+v", got, err, want)
	}
}

func FuzzDecodeSplit(f *testing.F) {
	f.Add([]byte{0, 0, 0})
	f.Add([]byte{0xac, 2, 0xef, 0xcb, 0x13, 0x80, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := splitCodec{}.Decode(1, data)
		if err != nil {
			return
		}
		again, err := splitCodec{}.Encode(s)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%x decodes to %+v and encodes to %x (%v)", data, s, again, err)
		}
	})
}

func BenchmarkPoll(b *testing.B) {
	for _, cfg := range []Config{{}, {Copied: true}, {Shared: true}, {Copied: true, Shared: true}} {
		b.Run(fmt.Sprintf("copied=%t,shared=%t", cfg.Copied, cfg.Shared), func(b *testing.B) {
			s, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			ctx := lent{make(chan struct{}, 1)}
			r, err := s.NewReader(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if err := r.AddSplits([]Split{{}}); err != nil {
				b.Fatal(err)
			}
			turn := sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)
			out := &batchOutput{turn: turn}
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += out.batch.Len() {
				out.batch.Reset()
				turn.Restart()
				status, err := r.Poll(turn, out)
				if err != nil {
					b.Fatal(err)
				}
				if status == sdk.NothingAvailable {
					<-ctx.doorbell
				}
			}
			b.StopTimer()
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
