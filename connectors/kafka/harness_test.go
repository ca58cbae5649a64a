package kafka

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// lent is a working ReaderContext: rings go to a one-slot doorbell, as in an engine.
type lent struct {
	doorbell chan struct{}
	log      *slog.Logger
	metrics  *instruments
}

func newLent() *lent {
	return &lent{doorbell: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler), metrics: newInstruments()}
}

func (l *lent) Reader() sdk.ReaderID     { return 0 }
func (l *lent) Parallelism() int         { return 1 }
func (l *lent) Logger() *slog.Logger     { return l.log }
func (l *lent) Metrics() sdk.Metrics     { return l.metrics }
func (l *lent) RequestSplit()            {}
func (l *lent) SendEvent(sdk.Event) bool { return true }
func (l *lent) NotifyAvailable() {
	select {
	case l.doorbell <- struct{}{}:
	default:
	}
}

// instruments keeps what was measured; changed rings when something was.
type instruments struct {
	changed chan struct{}

	mu     sync.Mutex
	values map[string]*float64 // a nil value is an absent one
}

func newInstruments() *instruments {
	return &instruments{changed: make(chan struct{}, 1), values: make(map[string]*float64)}
}

type instrument struct {
	in   *instruments
	name string
}

func (in *instruments) Counter(name, _, _ string) sdk.Counter { return instrument{in, name} }
func (in *instruments) Gauge(name, _, _ string) sdk.Gauge     { return instrument{in, name} }

func (in *instruments) get(name string) (float64, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if v := in.values[name]; v != nil {
		return *v, true
	}
	return 0, false
}

func (in *instruments) ring() {
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

func (i instrument) Set(v float64) {
	i.in.mu.Lock()
	i.in.values[i.name] = &v
	i.in.mu.Unlock()
	i.in.ring()
}

func (i instrument) Unset() {
	i.in.mu.Lock()
	delete(i.in.values, i.name)
	i.in.mu.Unlock()
	i.in.ring()
}

func (i instrument) Add(n int64) {
	v, _ := i.in.get(i.name)
	i.Set(v + float64(n))
}

// collector is the engine's output: it keeps what it was given and takes from the turn.
type collector struct {
	turn     *sdk.Turn
	records  []sdk.Record
	finished []Split
}

func (c *collector) Emit(rec sdk.Record) bool {
	c.records = append(c.records, rec)
	c.turn.Consume(1, rec.Size())
	return true
}

func (c *collector) EmitView(v sdk.View, from int) (int, bool) {
	to := from
	for to < v.Len() && c.turn.Records() > 0 && c.turn.Bytes() > 0 {
		var rec sdk.Record
		if v.Record(to, &rec) {
			c.records = append(c.records, rec)
		}
		c.turn.Consume(1, v.Bytes(to, to+1))
		to++
	}
	return to - from, true
}

func (c *collector) FinishSplit(final sdk.Split) { c.finished = append(c.finished, final.(Split)) }

// run is a reader driven as an engine would, only polled when told to.
type run struct {
	t    testing.TB
	ctx  *lent
	r    sdk.Reader[Split]
	turn *sdk.Turn
	out  *collector
}

func read(t testing.TB, s *Source, splits ...Split) *run {
	t.Helper()
	return readLogging(t, s, slog.New(slog.DiscardHandler), splits...)
}

func readLogging(t testing.TB, s *Source, log *slog.Logger, splits ...Split) *run {
	t.Helper()
	ctx := newLent()
	ctx.log = log
	r, err := s.NewReader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn := sdk.NewTurn(sdk.TurnLimits{Records: 64, Bytes: 1 << 20, Duration: time.Second}, time.Now, nil)
	u := &run{t: t, ctx: ctx, r: r, turn: turn, out: &collector{turn: turn}}
	u.add(splits...)
	return u
}

func (u *run) add(splits ...Split) {
	u.t.Helper()
	if err := u.r.AddSplits(splits); err != nil {
		u.t.Fatal(err)
	}
}

// until polls until done says so, the input ends, or a poll fails; waiting too long fails the test.
func (u *run) until(done func() bool) (ended bool, err error) {
	u.t.Helper()
	limit := time.After(30 * time.Second)
	for !done() {
		u.turn.Restart()
		status, err := u.r.Poll(u.turn, u.out)
		switch {
		case err != nil:
			return false, err
		case status == sdk.EndOfInput:
			return true, nil
		case status == sdk.MoreAvailable || done():
			continue
		}
		select {
		case <-u.ctx.doorbell:
		case <-limit:
			u.t.Fatalf("waited too long: %d records, %d splits finished", len(u.out.records), len(u.out.finished))
		}
	}
	return false, nil
}

// records polls until n records have come.
func (u *run) records(n int) []sdk.Record {
	u.t.Helper()
	if _, err := u.until(func() bool { return len(u.out.records) >= n }); err != nil {
		u.t.Fatal(err)
	}
	return u.out.records
}

// end says that no splits follow and polls to the end of the input.
func (u *run) end() []sdk.Record {
	u.t.Helper()
	u.noMore()
	ended, err := u.until(func() bool { return false })
	if err != nil || !ended {
		u.t.Fatalf("ended %t, error %v", ended, err)
	}
	return u.out.records
}

func (u *run) noMore() {
	u.t.Helper()
	if err := u.r.(sdk.NoMoreSplitsHandler).NoMoreSplits(); err != nil {
		u.t.Fatal(err)
	}
}

// fail polls until the reader fails.
func (u *run) fail() error {
	u.t.Helper()
	_, err := u.until(func() bool { return false })
	if err == nil {
		u.t.Fatal("the reader did not fail")
	}
	return err
}

// snapshot returns the positions by partition.
func (u *run) snapshot() map[place]Split {
	u.t.Helper()
	splits, err := u.r.Snapshot(1)
	if err != nil {
		u.t.Fatal(err)
	}
	byPlace := make(map[place]Split)
	for _, s := range splits {
		byPlace[s.place()] = s
	}
	return byPlace
}

// awaitMetric waits until the instrument has a value that want accepts.
func (u *run) awaitMetric(name string, want func(v float64, ok bool) bool) {
	u.t.Helper()
	limit := time.After(30 * time.Second)
	for !want(u.ctx.metrics.get(name)) {
		select {
		case <-u.ctx.metrics.changed:
		case <-limit:
			v, ok := u.ctx.metrics.get(name)
			u.t.Fatalf("waited too long: %s is %v (present: %t)", name, v, ok)
		}
	}
}

// discover runs one round as the enumerator would.
func discover(t testing.TB, s *Source, first bool, known ...place) ([]Split, error) {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	d := &discovery{source: s.withDefaults()}
	d.owns = d.source.topicFilter()
	return d.round(t.Context(), base.Round{First: first, Known: func(id sdk.SplitID) bool {
		return slices.ContainsFunc(known, func(p place) bool { return p.splitID() == id })
	}})
}

// discoverAfter runs a later round, which knows the splits.
func discoverAfter(t testing.TB, s *Source, known []Split) ([]Split, error) {
	t.Helper()
	d := &discovery{source: s.withDefaults()}
	d.owns = d.source.topicFilter()
	ids := make([]sdk.SplitID, len(known))
	for i := range known {
		ids[i] = known[i].SplitID()
	}
	return d.round(t.Context(), base.Round{
		Known:      func(id sdk.SplitID) bool { return slices.Contains(ids, id) },
		Unfinished: slices.Values(ids),
	})
}

// splitsOf runs a first discovery that must work.
func splitsOf(t testing.TB, s *Source) []Split {
	t.Helper()
	splits, err := discover(t, s, true)
	if err != nil {
		t.Fatal(err)
	}
	return splits
}

func broker(t testing.TB, o kafkatest.Options) *kafkatest.Broker {
	t.Helper()
	return kafkatest.Start(t, o)
}

func sourceOf(b *kafkatest.Broker, topics ...string) *Source {
	return &Source{Brokers: b.Addrs(), Topics: topics, FetchMaxWait: 50 * time.Millisecond, Client: b.ClientOptions()}
}

func produce(t testing.TB, b *kafkatest.Broker, records ...*kgo.Record) {
	t.Helper()
	if err := b.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

// numbered makes n records for a partition with their number as value.
func numbered(topic string, partition int32, from, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Append(nil, from+i)}
	}
	return records
}

func offsetsOf(records []sdk.Record) []int64 {
	offsets := make([]int64, len(records))
	for i := range records {
		offsets[i] = records[i].Offset
	}
	return offsets
}

func count(n int) []int64 {
	offsets := make([]int64, n)
	for i := range offsets {
		offsets[i] = int64(i)
	}
	return offsets
}

func transact(t testing.TB, b *kafkatest.Broker, commit bool, records ...*kgo.Record) {
	t.Helper()
	tx := begin(t, b, records...)
	end := tx.Abort
	if commit {
		end = tx.Commit
	}
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, b *kafkatest.Broker, records ...*kgo.Record) *kafkatest.Transaction {
	t.Helper()
	tx, err := b.Begin(t.Context(), records...)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}
