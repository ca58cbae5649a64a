package fake

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// maxTriggered is how many triggered faults wait to be looked at before further ones go unreported.
const maxTriggered = 1024

// script is the shared state of the faults of a Source. Any goroutine may use it.
type script struct {
	faults    []*scripted
	triggered chan Fault
	released  chan struct{}
	release   sync.Once
}

type scripted struct {
	Fault
	left atomic.Int64
}

func newScript(faults []Fault) *script {
	s := &script{triggered: make(chan Fault, maxTriggered), released: make(chan struct{})}
	for _, f := range faults {
		x := &scripted{Fault: f}
		switch f.Times {
		case 0:
			x.left.Store(1)
		case Always:
			x.left.Store(math.MaxInt64)
		default:
			x.left.Store(int64(f.Times))
		}
		s.faults = append(s.faults, x)
	}
	return s
}

// nextAt answers the first record from on at which a fault of that side may happen, or [math.MaxInt64].
func (s *script) nextAt(onFetch bool, split int, from int64) int64 {
	next := int64(math.MaxInt64)
	for _, f := range s.faults {
		if f.onFetch() == onFetch && f.Split == split && f.Record >= from && f.left.Load() > 0 {
			next = min(next, f.Record)
		}
	}
	return next
}

func (f *scripted) onFetch() bool { return f.Kind.onFetch() }

// strike takes the fault of that side at the record, if one is left.
func (s *script) strike(onFetch bool, split int, record int64) (Fault, bool) {
	for _, f := range s.faults {
		if f.onFetch() != onFetch || f.Split != split || f.Record != record {
			continue
		}
		if f.left.Add(-1) < 0 {
			f.left.Store(0)
			continue
		}
		select {
		case s.triggered <- f.Fault:
		default:
		}
		return f.Fault, true
	}
	return Fault{}, false
}

func (f Fault) err() error {
	return fmt.Errorf("%w: %s at record %d of split %d", ErrFault, f.Kind, f.Record, f.Split)
}
