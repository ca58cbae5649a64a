package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
)

// Plan is everything that a seed decides about a simulation before it starts. What it cannot decide is in which order Go
// runs goroutines that are ready at the same moment.
type Plan struct {
	Seed    uint64
	Splits  int   // from the beginning
	Later   []int // discovered one after the other while the job runs; such a job never ends by itself
	Records int64 // of each split
	Keys    int
	Durable bool // splits are assigned only when a checkpoint contains them
	Lives   []LifePlan
}

// LifePlan is one process in which the job runs.
type LifePlan struct {
	Parallelism int
	Exchange    exchange.Kind
	Interval    time.Duration
	Keep        int
	Options     engine.Options
	Source      fake.Config // with the faults of polls, fetches and discoveries
	Rates       map[Place]float64
	DiskDelay   time.Duration // the longest of one operation
	Room        int64         // bytes that the disk takes before it is full until calm; negative for any number
	Calm        time.Duration // when faults end
	Savepoints  []time.Duration
	End         End
}

// End is how a life ends, unless the job ends or fails before.
type End struct {
	Kind  EndKind
	After time.Duration // for those that come at a moment
	Place Place         // for CrashAt: at the N-th call of it
	N     int
	Late  bool // CrashAt happens after the call had its effect
	Fate  Fate // of what the disk had not synced
}

// EndKind says what ends a life.
type EndKind uint8

// Kinds of ends.
const (
	RunOn   EndKind = iota // until the job has read everything
	Crash                  // the process dies at a moment
	CrashAt                // the process dies in a call
	Stop                   // with a savepoint
	Cancel
)

func (k EndKind) String() string {
	return [...]string{"runs on", "crashes", "crashes in a call", "is stopped", "is cancelled"}[k]
}

// Fate is what a crash does to data that was not synced.
type Fate uint8

// Fates.
const (
	FateRandom Fate = iota // each change by itself, torn files included
	FateLose
	FateKeep
	FateKill // the process dies, the machine does not
)

func (e End) String() string {
	switch e.Kind {
	case RunOn:
		return e.Kind.String()
	case CrashAt:
		when := "before"
		if e.Late {
			when = "after"
		}
		return fmt.Sprintf("%s: %s call %d of %s (fate %d)", e.Kind, when, e.N, e.Place, e.Fate)
	case Crash, Stop, Cancel:
		return fmt.Sprintf("%s at %s (fate %d)", e.Kind, e.After, e.Fate)
	default:
		return "?"
	}
}

func (p *Plan) total() int { return p.splits() * int(p.Records) }

func (p *Plan) splits() int {
	n := p.Splits
	for _, more := range p.Later {
		n += more
	}
	return n
}

// ordered: forward in every life, so that each split's records become visible in order.
func (p *Plan) ordered() bool {
	for i := range p.Lives {
		if p.Lives[i].Exchange != exchange.Forward {
			return false
		}
	}
	return true
}

func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d splits, later %v, %d records each, %d keys, durable %t\n", p.Seed, p.Splits, p.Later, p.Records, p.Keys, p.Durable)
	for i := range p.Lives {
		l := &p.Lives[i]
		fmt.Fprintf(&b, "  life %d: %s x %d, interval %s, calm after %s, %s\n", i, l.Exchange, l.Parallelism, l.Interval, l.Calm, l.End)
		o := &l.Options
		fmt.Fprintf(&b, "    mailbox %d, payload %d, poll %d, credit %d, tracker %d, cancel %s, checkpoint timeout %s, restarts %d, disk delay %s, room %d\n",
			o.MailboxCommands, o.CommandPayloadBytes, o.PollRecords, o.ExchangeCredit, o.TrackerEntries, o.PollCancel, o.CheckpointTimeout,
			o.RestartLimit, l.DiskDelay, l.Room)
		fmt.Fprintf(&b, "    chunk %d, view %t, fetchers %d, fetch %s, script %v\n", l.Source.ChunkSize, !l.Source.Copied, l.Source.Fetchers,
			l.Source.Faults.FetchLatency, l.Source.Faults.Script)
		for _, place := range Places {
			if r := l.Rates[place]; r > 0 {
				fmt.Fprintf(&b, "    %s fails %g\n", place, r)
			}
		}
	}
	return b.String()
}

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
		lives = append(lives, newLife(rng, p, kind, i == n-1))
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

func newLife(rng *rand.Rand, p *Plan, kind exchange.Kind, last bool) LifePlan {
	l := LifePlan{
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
	if !last {
		l.End = newEnd(rng)
	}
	return l
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
