package fake

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds of a [Config].
const (
	MaxSplits     = 1_000_000
	MaxRecordSize = 16 << 20
	MaxChunkSize  = 65_536

	maxSharedSize = 3 << 10
	maxSharedKeys = 65_536
)

// Defaults of a [Config].
const (
	DefaultRecordSize = 100
	DefaultChunkSize  = 1024
	DefaultInterval   = time.Second
)

// Config says what is made up. The zero value is one endless split of records of 100 bytes without keys.
type Config struct {
	// Seed makes another sequence of keys and values.
	Seed uint64
	// Splits exist from the beginning; zero means one.
	Splits int
	// LaterSplits appear afterwards: so many at the first discovery that follows a recorded one, and so on. A job with
	// later splits never ends by itself, because more could follow.
	LaterSplits []int
	// Interval is the pause between discoveries when there are LaterSplits; zero means one second.
	Interval time.Duration
	// Durable assigns splits only when they are in a completed checkpoint.
	Durable bool

	// RecordsPerSplit ends each split; zero means endless.
	RecordsPerSplit int64
	// RecordSize is the length of a value in bytes; zero means 100. The text at its beginning is never cut.
	RecordSize int
	// KeyCount is how many different keys there are; zero means records without a key.
	KeyCount int

	// Shared makes values slices of one buffer that do not begin with split and index, and so takes the making of values out
	// of a measurement. Values are at most 3 KiB then, and there are at most 65,536 keys.
	Shared bool

	// RecordsPerSecond limits each reader; zero means no limit.
	RecordsPerSecond float64
	// Copied hands over each record by itself, as a source does whose client holds nothing that a view could present. Else
	// each chunk is one view, see sdk.Output.EmitView.
	Copied bool
	// ChunkSize is how many records a fetch brings at most; zero means 1024.
	ChunkSize int
	// Fetchers is how many fetchers share the splits of a reader; zero means one.
	Fetchers int
	// CloseTimeout is how long a reader waits, when it is closed, for a fetch that is stuck; zero means ten seconds.
	CloseTimeout time.Duration

	// Faults are what goes wrong.
	Faults Faults
}

// Faults of a [Config]. The zero value is a source without faults.
type Faults struct {
	// Script is what happens at single records.
	Script []Fault
	// FetchLatency is how long each fetch takes.
	FetchLatency time.Duration
	// FalseRings rings the reader's doorbell that often although nothing came.
	FalseRings time.Duration
	// EmptyTurns makes every n-th poll answer MoreAvailable without having emitted anything.
	EmptyTurns int
	// DiscoveryLatency is how long each discovery takes.
	DiscoveryLatency time.Duration
	// DiscoveryFailures is how many discoveries fail before the first one works.
	DiscoveryFailures int
}

// Kind is what a [Fault] does.
type Kind uint8

const (
	// FailFetch makes the fetch of the record fail; what comes before it is delivered.
	FailFetch Kind = iota + 1
	// PanicFetch panics on the fetcher's goroutine.
	PanicFetch
	// StuckFetch blocks the fetch until its context ends or the source is released.
	StuckFetch
	// DeafFetch blocks the fetch until the source is released, whatever its context says.
	DeafFetch
	// FailEmit makes the poll fail that would emit the record.
	FailEmit
	// PanicEmit panics on the reader loop.
	PanicEmit
	// StuckPoll blocks the poll, which no reader may do, until a Wakeup or until the source is released.
	StuckPoll
	// DeafPoll blocks the poll until the source is released.
	DeafPoll
)

func (k Kind) String() string {
	names := [...]string{"", "fail-fetch", "panic-fetch", "stuck-fetch", "deaf-fetch", "fail-emit", "panic-emit", "stuck-poll", "deaf-poll"}
	if int(k) >= len(names) || k == 0 {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return names[k]
}

func (k Kind) onFetch() bool { return k >= FailFetch && k <= DeafFetch }

// Fault happens when record Record of split Split is about to be fetched or emitted.
type Fault struct {
	Kind   Kind
	Split  int
	Record int64
	// Times is how often it happens, over all readers and restarts of the Source; zero means once, [Always] every time.
	Times int
}

// Always as the Times of a [Fault] makes it happen every time.
const Always = -1

// ErrFault is wrapped by every error that a fault made.
var ErrFault = errors.New("scripted fault")

func (c Config) withDefaults() Config {
	c.Splits = orDefault(c.Splits, 1)
	c.RecordSize = orDefault(c.RecordSize, DefaultRecordSize)
	c.ChunkSize = orDefault(c.ChunkSize, DefaultChunkSize)
	c.Fetchers = orDefault(c.Fetchers, 1)
	c.Interval = orDefault(c.Interval, DefaultInterval)
	return c
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// Validate reports everything that is wrong, not only the first.
func (c Config) Validate() error {
	var errs []error
	within := func(name string, v, most int64) {
		if v < 0 || v > most {
			errs = append(errs, fmt.Errorf("fake: %s is %d: use 0 to %d", name, v, most))
		}
	}
	splits := int64(c.Splits)
	for i, n := range c.LaterSplits {
		within(fmt.Sprintf("LaterSplits[%d]", i), int64(n), MaxSplits)
		splits += int64(n)
	}
	within("Splits, later ones included,", splits, MaxSplits)
	within("RecordsPerSplit", c.RecordsPerSplit, math.MaxInt64-1)
	maxSize, maxKeys := int64(MaxRecordSize), int64(math.MaxInt32)
	if c.Shared {
		maxSize, maxKeys = maxSharedSize, maxSharedKeys
	}
	within("RecordSize", int64(c.RecordSize), maxSize)
	within("KeyCount", int64(c.KeyCount), maxKeys)
	within("ChunkSize", int64(c.ChunkSize), MaxChunkSize)
	within("Fetchers", int64(c.Fetchers), 1024)
	within("Interval", int64(c.Interval), math.MaxInt64)
	within("CloseTimeout", int64(c.CloseTimeout), math.MaxInt64)
	within("Faults.FetchLatency", int64(c.Faults.FetchLatency), math.MaxInt64)
	within("Faults.FalseRings", int64(c.Faults.FalseRings), math.MaxInt64)
	within("Faults.EmptyTurns", int64(c.Faults.EmptyTurns), math.MaxInt32)
	within("Faults.DiscoveryLatency", int64(c.Faults.DiscoveryLatency), math.MaxInt64)
	within("Faults.DiscoveryFailures", int64(c.Faults.DiscoveryFailures), math.MaxInt32)
	if !(c.RecordsPerSecond >= 0) || math.IsInf(c.RecordsPerSecond, 0) {
		errs = append(errs, fmt.Errorf("fake: RecordsPerSecond is %v: use 0 for no limit, or more", c.RecordsPerSecond))
	}
	for i, f := range c.Faults.Script {
		if f.Kind < FailFetch || f.Kind > DeafPoll {
			errs = append(errs, fmt.Errorf("fake: Faults.Script[%d].Kind is %d: use one of the Kind constants", i, uint8(f.Kind)))
		}
		if f.Times < Always {
			errs = append(errs, fmt.Errorf("fake: Faults.Script[%d].Times is %d: use a number of times, 0 for once, or Always", i, f.Times))
		}
	}
	return errors.Join(errs...)
}
