package conformance

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// Version is the version of the suite. It grows when a source that passed may fail.
const Version = 1

// Backend is the system that a source reads, in the process of the test. It has parts, numbered from 0, each of which becomes one
// split. All methods but Close may be called from any goroutine; none of them blocks for long.
//
// It is made inside of a synctest bubble: whatever it starts ends with Close, and whatever it waits for is a channel, a timer, or a
// connection of package inprocess.
type Backend interface {
	// Append adds records with these values to the end of a part.
	Append(part int, values ...string)
	// Stall makes the system hang: what it is asked for from now on, and what it is being asked for, waits until Resume. Nothing
	// is lost, and nobody is told. What waits gives up when its context ends or its connection is closed.
	Stall()
	// Resume ends a Stall, and does nothing without one.
	Resume()
	// Close ends the system, stalled or not, and everything that it has started.
	Close()
}

// Failer is an optional ability of a [Backend]: the next calls that the source makes fail, in a way that is over when they are made again.
type Failer interface{ Fail(calls int) }

// Dropper is an optional ability of a [Backend]: all connections break, new ones are accepted.
type Dropper interface{ Drop() }

// Grower is an optional ability of a [Backend]: from now on it has that many parts in all, the ones that it had included.
type Grower interface{ Grow(parts int) }

// Counter is an optional ability of a [Backend]: how many connections its clients have open, by which one that is never closed is found.
type Counter interface{ Open() int }

// Harness says how to try a source. S is its split, B the backend.
type Harness[S sdk.Split, B Backend] struct {
	// Backend makes a system with that many empty parts. Required.
	Backend func(parts int) B
	// Source makes a source that reads all parts from their beginning and does not end. It is called more than once for a
	// backend, as if by several processes. Required.
	Source func(B) sdk.Source[S]
	// Bounded makes a source that reads what the system holds when it is made, and then ends. Nil when the source cannot end:
	// the cases that need it are skipped.
	Bounded func(B) sdk.Source[S]

	// Text answers which appended value a record holds; ok is false for a record that holds none. Nil means the record's value.
	Text func(b B, rec *sdk.Record) (value string, ok bool)

	// Golden names the files with an encoded split of each published version, %d being the version. They are kept for ever. Empty
	// means testdata/split-v%d.bin. With the environment variable PENSTOCK_GOLDEN=write a missing file of the present version is
	// written.
	Golden string

	// Parts is how many parts the system can have at most; zero means any number. Cases that need more are skipped.
	Parts int
	// Delay is how long it may take until an appended record is there to be emitted; zero means [DefaultDelay].
	Delay time.Duration
	// Discovery is how long it may take until a part that appeared is discovered; zero means [DefaultDiscovery].
	Discovery time.Duration

	// Wall says that the system is in another process: a real server. Cases then run on the clock of the wall, several at once, and
	// those that need the clock of a bubble are skipped; see [Case.OnTheWall]. Delay and Discovery are time that passes, so they want
	// to be short: a second, ten seconds.
	Wall bool

	// Exempt names cases that are skipped, with the reason, which is shown. A release lists each of them.
	Exempt map[string]string
}

// Defaults of a [Harness].
const (
	DefaultDelay     = 10 * time.Second
	DefaultDiscovery = 10 * time.Minute
	DefaultGolden    = "testdata/split-v%d.bin"
)

func (h Harness[S, B]) withDefaults() Harness[S, B] {
	if h.Text == nil {
		h.Text = func(_ B, rec *sdk.Record) (string, bool) { return string(rec.Value), true }
	}
	if h.Golden == "" {
		h.Golden = DefaultGolden
	}
	if h.Delay == 0 {
		h.Delay = DefaultDelay
	}
	if h.Discovery == 0 {
		h.Discovery = DefaultDiscovery
	}
	return h
}

func (h Harness[S, B]) validate() error {
	var errs []error
	if h.Backend == nil {
		errs = append(errs, errors.New("Harness.Backend is not set: it makes the system that the source reads"))
	}
	if h.Source == nil {
		errs = append(errs, errors.New("Harness.Source is not set: it makes the source"))
	}
	for name := range h.Exempt {
		if _, ok := caseNamed(name); !ok {
			errs = append(errs, fmt.Errorf("Harness.Exempt names %q, which is no case", name))
		}
	}
	return errors.Join(errs...)
}
