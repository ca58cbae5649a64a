package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Place is a kind of call at which things go wrong.
type Place string

// Places.
const (
	SinkOpen         Place = "sink open"
	SinkWrite        Place = "sink write"
	SinkPrepare      Place = "sink prepare"
	SinkCommit       Place = "sink commit"
	SinkRestore      Place = "sink restore"
	SinkDiscard      Place = "sink discard"
	SinkClose        Place = "sink close"
	EnumeratorNew    Place = "enumerator new"
	EnumeratorStart  Place = "enumerator start"
	EnumeratorAdd    Place = "enumerator add reader"
	EnumeratorReturn Place = "enumerator return splits"
	EnumeratorCut    Place = "enumerator snapshot"
	EnumeratorEnded  Place = "enumerator splits finished"
	EnumeratorDone   Place = "enumerator checkpoint complete"
	EnumeratorAbort  Place = "enumerator checkpoint aborted"
	EnumeratorClose  Place = "enumerator close"
	ReaderOpen       Place = "reader open"
	ReaderAdd        Place = "reader add splits"
	ReaderCut        Place = "reader snapshot"
	ReaderDone       Place = "reader checkpoint complete"
	DiskOp           Place = "disk operation"
)

// Places lists all of them in a fixed order, by which plans are drawn.
var Places = []Place{
	SinkOpen, SinkWrite, SinkPrepare, SinkCommit, SinkRestore, SinkDiscard, SinkClose, EnumeratorNew, EnumeratorStart, EnumeratorAdd,
	EnumeratorReturn, EnumeratorCut, EnumeratorEnded, EnumeratorDone, EnumeratorAbort, EnumeratorClose, ReaderOpen, ReaderAdd, ReaderCut, ReaderDone, DiskOp,
}

var (
	// errInjected is wrapped by every error that the simulation makes.
	errInjected = errors.New("injected fault")
	// errDead is what a dead process gets from everything outside of it.
	errDead = errors.New("the process is dead")
)

// chaos decides about each call of one life. A decision depends on the seed, the life, the place, the task and how often
// that task was there before: not on the order in which tasks run.
type chaos struct {
	seed  uint64
	rates map[Place]float64
	end   End
	note  func(format string, args ...any)
	die   func(why string)
	hang  time.Duration // the longest

	quiet    atomic.Bool // set before calm is closed
	calm     chan struct{}
	calmOnce sync.Once
	dead     chan struct{}

	mu struct {
		sync.Mutex
		calls map[callKey]uint64
		total map[Place]int
	}
}

type callKey struct {
	place Place
	task  int
}

func newChaos(seed uint64, l *LifePlan) *chaos {
	c := &chaos{
		seed: seed, rates: l.Rates, end: l.End, calm: make(chan struct{}), dead: make(chan struct{}),
		hang: 2 * l.Options.PollCancel,
	}
	c.mu.calls, c.mu.total = map[callKey]uint64{}, map[Place]int{}
	return c
}

// calmDown ends all faults and frees what hangs.
func (c *chaos) calmDown() {
	c.calmOnce.Do(func() {
		c.quiet.Store(true)
		close(c.calm)
	})
}

// verdict is what happens at one call.
type verdict struct {
	what outcome
	late bool          // after the call had its effect
	time time.Duration // of a hang
	dies bool
}

type outcome uint8

const (
	fine outcome = iota
	fails
	panics
	hangs // until its context ends
	deaf  // whatever its context says
)

// count numbers a call among those of its place and task, and among all of its place.
func (c *chaos) count(place Place, task int) (n uint64, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := callKey{place, task}
	c.mu.calls[key]++
	c.mu.total[place]++
	return c.mu.calls[key], c.mu.total[place]
}

func (c *chaos) decide(place Place, task int) verdict {
	n, total := c.count(place, task)
	v := verdict{}
	if c.end.Kind == CrashAt && c.end.Place == place && c.end.N == total {
		return verdict{dies: true, late: c.end.Late}
	}
	if c.quiet.Load() {
		return v
	}
	h := mix(c.seed ^ mix(hashOf(place)^mix(uint64(task)<<32|n)))
	if float64(h>>11)/(1<<53) >= c.rates[place] {
		return v
	}
	h = mix(h)
	v.late = h&1 == 0
	switch h >> 1 % 8 {
	case 0, 1, 2, 3:
		v.what = fails
	case 4:
		v.what = panics
	case 5, 6:
		v.what = hangs
	default:
		v.what = deaf
	}
	v.time = time.Duration(mix(h) % uint64(c.hang))
	return v
}

// around makes a call of effect with whatever the plan says happens to it.
func (c *chaos) around(ctx context.Context, place Place, task int, effect func() error) error {
	v := c.decide(place, task)
	if v.dies && !v.late {
		c.die(fmt.Sprintf("before %s of %d", place, task))
	}
	if v.what != fine && !v.late {
		if err := c.suffer(ctx, v, place, task); err != nil {
			return err
		}
	}
	err := effect()
	if v.dies && v.late {
		c.die(fmt.Sprintf("after %s of %d", place, task))
	}
	if v.what != fine && v.late && err == nil {
		return c.suffer(ctx, v, place, task)
	}
	return err
}

func (c *chaos) suffer(ctx context.Context, v verdict, place Place, task int) error {
	err := fmt.Errorf("%w: %s of %d", errInjected, place, task)
	switch v.what {
	case fine:
	case fails:
		c.note("%s of %d fails (late %t)", place, task, v.late)
		return err
	case panics:
		c.note("%s of %d panics (late %t)", place, task, v.late)
		panic(err)
	case hangs:
		c.note("%s of %d hangs for %s (late %t)", place, task, v.time, v.late)
		return c.wait(ctx, v.time)
	case deaf:
		c.note("%s of %d hangs for %s, deaf (late %t)", place, task, v.time, v.late)
		return c.wait(context.Background(), v.time)
	}
	return nil
}

// wait lets virtual time pass, until faults end at the latest.
func (c *chaos) wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.calm:
	case <-c.dead:
		return errDead
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func hashOf(p Place) uint64 { return hashBytes(hashSeed, []byte(p)) }

const hashSeed uint64 = 14695981039346656037

// hashBytes continues a hash (FNV-1a).
func hashBytes(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// mix spreads neighbouring numbers over all bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
