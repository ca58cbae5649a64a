package kinesistest

import (
	"slices"
	"sync"
)

const (
	// SubscribeToShardEvent is, as the operation of a fault, each event of a subscription. Events are not among [Server.Calls].
	SubscribeToShardEvent = "SubscribeToShardEvent"
	// Always is, as the Times of a fault, until it is removed.
	Always = -1
)

// Fault is something that goes wrong with some requests of clients; what the process does with the server's own methods has no faults. Fields that are empty match
// anything.
type Fault struct {
	Operation string // such as "GetRecords"
	Stream    string
	Shard     string // its id
	Consumer  string // its name
	// Skip is how many matching requests go well first.
	Skip int
	// Times is how many then go wrong: 0 is one, [Always] all.
	Times  int
	Effect Effect
}

func (f *Fault) matches(c *Call) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(f.Operation, c.Operation) && same(f.Stream, c.Stream) && same(f.Shard, c.Shard) && same(f.Consumer, c.Consumer)
}

// Injection is a fault at work. Its methods may be called from any goroutine.
type Injection struct {
	fault   Fault
	faults  *faults
	reached chan struct{}
	removed chan struct{}
	// the lock of faults guards these
	seen, hits int
	over       bool
}

// Reached is closed when the fault first hits a request.
func (i *Injection) Reached() <-chan struct{} { return i.reached }

// Hits is how many requests it has hit.
func (i *Injection) Hits() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.hits
}

// Remove ends the fault, also for requests that it holds back: those go on. It may be called twice.
func (i *Injection) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	if !i.over {
		i.over = true
		close(i.removed)
		i.faults.list = slices.DeleteFunc(i.faults.list, func(o *Injection) bool { return o == i })
	}
}

// faults are those of a server, in the order of their injection.
type faults struct {
	mu   sync.Mutex
	list []*Injection
}

// Inject puts a fault to work. Of several that match a request the one that was injected first hits it, and the others do not see it.
func (s *Server) Inject(f Fault) *Injection {
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Effect.arm != nil {
		f.Effect = f.Effect.arm(s)
	}
	i := &Injection{fault: f, faults: &s.faults, reached: make(chan struct{}), removed: make(chan struct{})}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, i)
	return i
}

// take returns the fault that hits a request, or one without effect.
func (f *faults) take(c *Call) *Injection {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, i := range f.list {
		if !i.fault.matches(c) {
			continue
		}
		if i.seen++; i.seen <= i.fault.Skip {
			continue
		}
		if i.hits++; i.hits == 1 {
			close(i.reached)
		}
		if i.hits == i.fault.Times { // used up; requests that it holds back stay with it
			f.list = slices.Delete(f.list, at, at+1)
		}
		return i
	}
	return noFault
}

// noFault is at work where nothing goes wrong.
var noFault = &Injection{}
