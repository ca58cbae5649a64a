package simulation

import (
	"fmt"
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

	cut []string // what was taken out
}

// LifePlan is one process in which the job runs.
type LifePlan struct {
	Number      int // in the plan as it was drawn: faults are decided by it
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
	Skew        time.Duration // of the wall clock
	Jumps       []Jump
	Partitions  []Partition
	Duplicates  float64 // of commands: the rate
	Strike      *Strike // nil: none
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
		fmt.Fprintf(&b, "  life %d: %s x %d, interval %s, calm after %s, %s\n", l.Number, l.Exchange, l.Parallelism, l.Interval, l.Calm, l.End)
		o := &l.Options
		fmt.Fprintf(&b, "    mailbox %d, payload %d, poll %d, credit %d, tracker %d, cancel %s, checkpoint timeout %s, restarts %d, disk delay %s, room %d\n",
			o.MailboxCommands, o.CommandPayloadBytes, o.PollRecords, o.ExchangeCredit, o.TrackerEntries, o.PollCancel, o.CheckpointTimeout,
			o.RestartLimit, l.DiskDelay, l.Room)
		if l.Skew != 0 || len(l.Jumps)+len(l.Partitions) > 0 || l.Duplicates > 0 || l.Strike != nil {
			fmt.Fprintf(&b, "    clock %s %v, partitions %v, duplicates %g, strike %v\n", l.Skew, l.Jumps, l.Partitions, l.Duplicates, l.Strike)
		}
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
