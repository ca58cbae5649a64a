package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// NewPlan derives the plan of a seed.
func NewPlan(seed uint64) *Plan {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	p := &Plan{
		Seed: seed, Splits: 1 + rng.IntN(8), Records: 1 + rng.Int64N(150), Keys: rng.IntN(4), Durable: rng.IntN(3) == 0,
	}
	for range oneIn(rng, 4) * (1 + rng.IntN(2)) {
		p.Later = append(p.Later, 1+rng.IntN(3))
	}
	p.Lives = newLives(rng, p)
	return p
}

// Vary is the same input under other options, faults and ends: whatever they are, the output is the same.
func (p *Plan) Vary(by uint64) *Plan {
	q := *p
	q.Lives = newLives(rand.New(rand.NewPCG(p.Seed, by)), &q)
	return &q
}

func newLives(rng *rand.Rand, p *Plan) (lives []LifePlan) {
	kind := kinds[rng.IntN(len(kinds))]
	mixed := rng.IntN(4) == 0
	n := 1 + rng.IntN(5)
	for i := range n {
		if mixed {
			kind = kinds[rng.IntN(len(kinds))]
		}
		lives = append(lives, newLife(rng, p, kind, i, i == n-1))
	}
	return lives
}

var kinds = []exchange.Kind{exchange.Forward, exchange.Rebalance, exchange.Keyed}

// oneIn is 1 in one of n cases, else 0.
func oneIn(rng *rand.Rand, n int) int {
	if rng.IntN(n) == 0 {
		return 1
	}
	return 0
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)+1))
}

func newLife(rng *rand.Rand, p *Plan, kind exchange.Kind, number int, last bool) LifePlan {
	l := LifePlan{
		Number:      number,
		Parallelism: 1 + rng.IntN(4), Exchange: kind, Keep: 1 + rng.IntN(3), Room: -1,
		Interval: pick(rng, engine.Never, 2*time.Millisecond, 5*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, time.Second),
		Options:  newOptions(rng), Rates: newRates(rng),
		DiskDelay: pick(rng, 0, 0, time.Millisecond, 20*time.Millisecond),
		Calm:      pick(rng, 50*time.Millisecond, 300*time.Millisecond, time.Second, 5*time.Second),
	}
	if rng.IntN(8) == 0 {
		l.Room = rng.Int64N(20_000)
	}
	for range oneIn(rng, 3) * (1 + rng.IntN(2)) {
		l.Savepoints = append(l.Savepoints, between(rng, 0, 200*time.Millisecond))
	}
	if len(p.Later) > 0 && l.Interval == engine.Never {
		l.Interval = 100 * time.Millisecond // nothing else would make the output of such a job visible
	}
	l.Source = newSource(rng, p)
	newTroubles(rng, &l)
	if !last {
		l.End = newEnd(rng)
	}
	return l
}

// newTroubles draws what stands between the parts of the engine.
func newTroubles(rng *rand.Rand, l *LifePlan) {
	if rng.IntN(3) == 0 {
		l.Skew = pick(rng, time.Hour, -time.Hour, 400*24*time.Hour, -400*24*time.Hour)
	}
	for range oneIn(rng, 5) * (1 + rng.IntN(3)) {
		l.Jumps = append(l.Jumps, Jump{
			between(rng, 0, l.Calm), pick(rng, between(rng, 0, time.Second), between(rng, 0, 2*time.Minute), -between(rng, 0, 2*time.Second)),
		})
	}
	for range oneIn(rng, 4) * (1 + rng.IntN(3)) {
		from := between(rng, 0, l.Calm)
		l.Partitions = append(l.Partitions, Partition{
			Reader: sdk.ReaderID(rng.IntN(l.Parallelism)), From: from, To: min(l.Calm, from+between(rng, 0, pick(rng, 20*time.Millisecond, time.Second))), Acks: rng.IntN(2) == 0,
		})
	}
	l.Duplicates = pick(rng, 0, 0, 0.1, 0.5)
	if rng.IntN(4) == 0 {
		s := &Strike{Point: seam.Points[rng.IntN(len(seam.Points))], N: 1 + rng.IntN(8), Then: Then(rng.IntN(3))}
		s.Reader, s.Coordinator = rng.IntN(2) == 0, rng.IntN(2) == 0
		s.Coordinator = s.Coordinator || !s.Reader
		if rng.IntN(3) == 0 {
			s.Grace = between(rng, time.Millisecond, 100*time.Millisecond)
		}
		l.Strike = s
	}
}

// newOptions are small bounds, so that each of them is hit.
func newOptions(rng *rand.Rand) engine.Options {
	o := engine.DefaultOptions()
	o.MailboxCommands = pick(rng, 1, 1, 2, 8)
	o.CommandPayloadBytes = pick[int64](rng, 1100, 1200, 4096)
	o.MailboxBytes = o.CommandPayloadBytes * pick[int64](rng, 1, 2)
	o.ProcessMailboxBytes = o.MailboxBytes * pick[int64](rng, 1, 4)
	o.ReservedCommands = pick(rng, 8, 64)
	o.AsyncConcurrency = 1 + rng.IntN(2)
	o.PollRecords = pick(rng, 1, 3, 16, 64)
	o.PollBytes = pick[int64](rng, 1, 500, 1<<20)
	o.PollCancel = pick(rng, 100*time.Millisecond, time.Second, 5*time.Second)
	o.PollHard = o.PollCancel / pick[time.Duration](rng, 2, 5)
	o.PollSoft = min(o.PollSoft, o.PollHard)
	o.RetryInitial, o.RetryMax = time.Millisecond, pick(rng, time.Millisecond, 50*time.Millisecond)
	o.TrackerEntries = pick(rng, 1, 2, 5, 1000)
	o.ExchangeCredit = pick(rng, 1, 2, 8)
	o.CheckpointTimeout = pick(rng, 20*time.Millisecond, 500*time.Millisecond, 10*time.Second)
	o.CheckpointFailures = pick(rng, 1, 5, 100)
	o.CommitAttempts = pick(rng, 1, 3, 10)
	o.StopTimeout = pick(rng, 30*time.Second, 2*time.Minute)
	o.RestartInitial = pick(rng, time.Millisecond, 50*time.Millisecond)
	o.RestartMax = o.RestartInitial * pick[time.Duration](rng, 1, 8)
	o.RestartLimit = pick(rng, 3, 30, 10_000)
	return o
}

func newRates(rng *rand.Rand) map[Place]float64 {
	rates := map[Place]float64{}
	quiet := rng.IntN(4) == 0
	for _, place := range Places {
		if !quiet && rng.IntN(3) == 0 {
			rates[place] = pick(rng, 0.01, 0.05, 0.2)
		}
	}
	if rates[DiskOp] > 0 {
		rates[DiskOp] = pick(rng, 0.001, 0.01, 0.05)
	}
	return rates
}

func newSource(rng *rand.Rand, p *Plan) fake.Config {
	c := fake.Config{
		Seed: p.Seed, Splits: p.Splits, LaterSplits: p.Later, Interval: between(rng, 5*time.Millisecond, 100*time.Millisecond),
		Durable: p.Durable, RecordsPerSplit: p.Records, RecordSize: 16, KeyCount: p.Keys, Copied: rng.IntN(2) == 1,
		ChunkSize: pick(rng, 1, 5, 30, 200), Fetchers: 1 + rng.IntN(2), CloseTimeout: pick(rng, 50*time.Millisecond, 2*time.Second),
	}
	c.Faults.FetchLatency = pick(rng, 0, time.Millisecond, 4*time.Millisecond, 30*time.Millisecond)
	if c.ChunkSize == 1 {
		c.Faults.FetchLatency = min(c.Faults.FetchLatency, 4*time.Millisecond) // else most of a simulation is waiting
	}
	if rng.IntN(8) == 0 {
		c.RecordsPerSecond = pick(rng, 200.0, 5000)
	}
	if rng.IntN(6) == 0 {
		c.Faults.FalseRings = between(rng, time.Millisecond, 20*time.Millisecond)
	}
	if rng.IntN(6) == 0 {
		c.Faults.EmptyTurns = 2 + rng.IntN(5)
	}
	c.Faults.DiscoveryLatency = pick(rng, 0, 0, 3*time.Millisecond)
	c.Faults.DiscoveryFailures = oneIn(rng, 4) * (1 + rng.IntN(3))
	for range rng.IntN(4) {
		c.Faults.Script = append(c.Faults.Script, fake.Fault{
			Kind:  fake.Kind(1 + rng.IntN(int(fake.DeafPoll))),
			Split: rng.IntN(p.splits()), Record: rng.Int64N(p.Records), Times: 1 + rng.IntN(3),
		})
	}
	return c
}

func newEnd(rng *rand.Rand) End {
	e := End{Kind: pick(rng, Crash, Crash, CrashAt, CrashAt, CrashAt, Stop, Cancel), Fate: Fate(rng.IntN(4))}
	e.After = between(rng, 0, pick(rng, 10*time.Millisecond, 100*time.Millisecond, time.Second))
	e.Place, e.N, e.Late = Places[rng.IntN(len(Places))], 1+rng.IntN(12), rng.IntN(2) == 0
	if rng.IntN(3) == 0 {
		e.Place = pick(rng, SinkPrepare, SinkCommit, SinkRestore)
	}
	if e.Place == DiskOp {
		e.N = 1 + rng.IntN(120)
	}
	return e
}
