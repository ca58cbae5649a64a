package realtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kafka"
	"github.com/penstock-dev/penstock/sdk"
)

// patience is how long anything may take. The machine may be busy with other tests; nothing waits that long when it works.
const patience = 90 * time.Second

// job runs a source as an engine with one reader would: enumerator and reader share the test's goroutine. A reader that fails is made
// anew from the state after its last turn, and what it emitted since is dropped; only fatal errors reach the test.
type job struct {
	t      testing.TB
	source *kafka.Source
	c      *coordinator // nil when the splits were given
	r      sdk.Reader[kafka.Split]
	bell   chan struct{}
	turn   *sdk.Turn
	status sdk.PollStatus

	saved    []kafka.Split // the state after the last turn
	records  []sdk.Record
	finished []kafka.Split
	failures []error // of readers that were made anew
	noMore   bool
}

// run starts the source from its configured position.
func run(t testing.TB, source *kafka.Source) *job {
	t.Helper()
	j := newJob(t, source)
	j.c = coordinate(t, source, nil)
	j.open()
	return j
}

// resume starts a reader at positions, as after a restore.
func resume(t testing.TB, source *kafka.Source, at ...kafka.Split) *job {
	t.Helper()
	j := newJob(t, source)
	j.saved = at
	j.open()
	return j
}

func newJob(t testing.TB, source *kafka.Source) *job {
	j := &job{t: t, source: source, bell: make(chan struct{}, 1)}
	j.turn = sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)
	t.Cleanup(j.close)
	return j
}

// open makes a reader that goes on from the saved state.
func (j *job) open() {
	j.t.Helper()
	r, err := j.source.NewReader(j)
	if err != nil {
		j.t.Fatal(err)
	}
	j.r = r
	if err := r.Open(j.t.Context()); err != nil {
		j.t.Fatal(err)
	}
	if len(j.saved) > 0 {
		if err := r.AddSplits(j.saved); err != nil {
			j.t.Fatal(err)
		}
	}
	if j.noMore {
		j.tellNoMore()
	}
}

func (j *job) close() {
	if j.r == nil {
		return
	}
	if err := j.r.Close(); err != nil {
		j.t.Error(err)
	}
	j.r = nil
}

func (j *job) tellNoMore() {
	j.t.Helper()
	j.noMore = true
	if err := j.r.(sdk.NoMoreSplitsHandler).NoMoreSplits(); err != nil {
		j.t.Fatal(err)
	}
}

// until runs until done says so, the input ends, or something fails for good.
func (j *job) until(what string, done func() bool) error {
	j.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	again := time.NewTicker(50 * time.Millisecond) // done may depend on what happens elsewhere
	defer again.Stop()
	for !done() {
		if err := j.step(); err != nil {
			return err
		}
		if j.status == sdk.MoreAvailable {
			continue
		}
		if j.status == sdk.EndOfInput || done() {
			return nil
		}
		select {
		case <-j.bell:
		case <-again.C:
		case task := <-j.tasks():
			task()
		case <-limit.C:
			j.t.Fatalf("waited %s for %s: %d records, %d splits finished, failures %v", patience, what, len(j.records), len(j.finished), j.failures)
		}
	}
	return nil
}

func (j *job) tasks() chan func() {
	if j.c == nil {
		return nil
	}
	return j.c.queue
}

// step gives the reader what is assigned to it and polls it once.
func (j *job) step() error {
	j.t.Helper()
	if j.c != nil {
		if j.c.err != nil {
			return j.c.err
		}
		if len(j.c.assigned) > 0 {
			if err := j.r.AddSplits(j.c.assigned); err != nil {
				return err
			}
			j.c.assigned = nil
		}
		if j.c.noMore && !j.noMore {
			j.tellNoMore()
		}
	}
	emitted, ended := len(j.records), len(j.finished)
	j.turn.Restart()
	status, err := j.r.Poll(j.turn, j)
	switch {
	case err == nil:
		j.status = status
		return j.save()
	case errors.Is(err, sdk.ErrFatal):
		return err
	default:
		j.failures = append(j.failures, err)
		j.records, j.finished = j.records[:emitted], j.finished[:ended]
		j.close()
		j.open()
		j.status = sdk.NothingAvailable
		return nil
	}
}

func (j *job) save() error {
	saved, err := j.r.Snapshot(1)
	if err == nil {
		j.saved = saved
	}
	return err
}

// read runs until n records have come and returns them.
func (j *job) read(n int) []sdk.Record {
	j.t.Helper()
	if err := j.until("records", func() bool { return len(j.records) >= n }); err != nil {
		j.t.Fatal(err)
	}
	if len(j.records) < n {
		j.t.Fatalf("the input ended after %d records, want %d", len(j.records), n)
	}
	return j.records
}

// end runs a bounded job to its end.
func (j *job) end() []sdk.Record {
	j.t.Helper()
	if err := j.until("the end", func() bool { return false }); err != nil {
		j.t.Fatal(err)
	}
	return j.records
}

// fail runs until the job fails for good.
func (j *job) fail() error {
	j.t.Helper()
	err := j.until("a failure", func() bool { return false })
	if err == nil {
		j.t.Fatal("the job did not fail")
	}
	return err
}

// quiet runs for a while in which no record may come.
func (j *job) quiet(d time.Duration) {
	j.t.Helper()
	before, end := len(j.records), time.Now().Add(d)
	if err := j.until("a quiet time", func() bool { return time.Now().After(end) }); err != nil {
		j.t.Fatal(err)
	}
	if len(j.records) != before {
		j.t.Fatalf("records %v came", offsets(j.records[before:]))
	}
}

// The job is the reader's context and output.
var (
	_ sdk.ReaderContext = (*job)(nil)
	_ sdk.Output        = (*job)(nil)
)

func (j *job) Reader() sdk.ReaderID     { return 0 }
func (j *job) Parallelism() int         { return 1 }
func (j *job) Logger() *slog.Logger     { return slog.New(slog.DiscardHandler) }
func (j *job) Metrics() sdk.Metrics     { return sdk.DiscardMetrics }
func (j *job) RequestSplit()            {}
func (j *job) SendEvent(sdk.Event) bool { return true }

func (j *job) NotifyAvailable() {
	select {
	case j.bell <- struct{}{}:
	default:
	}
}

func (j *job) Emit(rec sdk.Record) bool {
	j.records = append(j.records, rec)
	j.turn.Consume(1, rec.Size())
	return true
}

func (j *job) EmitView(v sdk.View, from int) (int, bool) {
	to := from
	for to < v.Len() && j.turn.Records() > 0 && j.turn.Bytes() > 0 {
		var rec sdk.Record
		if v.Record(to, &rec) {
			j.records = append(j.records, rec)
		}
		j.turn.Consume(1, v.Bytes(to, to+1))
		to++
	}
	return to - from, true
}

func (j *job) FinishSplit(final sdk.Split) { j.finished = append(j.finished, final.(kafka.Split)) }

// eventually asks again and again until done says so. It is for what a server does by itself, in its own time.
func eventually(t testing.TB, what string, done func(ctx context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var last error
	for {
		ok, err := done(ctx)
		if ok {
			return
		}
		last = err
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waited %s for %s (last error: %v)", patience, what, last)
		}
	}
}

func offsets(records []sdk.Record) []int64 {
	all := make([]int64, len(records))
	for i := range records {
		all[i] = records[i].Offset
	}
	return all
}
