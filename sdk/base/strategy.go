package base

import (
	"hash/fnv"

	"github.com/penstock-dev/penstock/sdk"
)

// Placement is what a [Strategy] may look at. It is read only and valid during the call.
type Placement struct {
	Parallelism int
	// Readers are the registered readers, ascending, at least one.
	Readers []sdk.ReaderID
	// Owned is how many splits each reader owns, by reader id, those placed a moment ago included.
	Owned []int
	// Placed counts the splits placed in this epoch.
	Placed int

	least *leastOwner
}

// Strategy chooses the reader of a split. It is called on the coordinator loop, only when every reader has registered
// once. A split whose reader is not registered at the moment waits for it.
type Strategy[S sdk.Split] func(split S, p Placement) sdk.ReaderID

// LeastLoaded places a split on the registered reader that owns the fewest, the lowest id among equals. The default.
func LeastLoaded[S sdk.Split](_ S, p Placement) sdk.ReaderID {
	if p.least == nil {
		p.least = new(leastOwner)
	}
	return p.least.find(p)
}

// leastOwner finds the reader that owns the fewest without looking at all of them each time: during a plan counts only
// grow, so who is above the floor stays above it. With a hundred thousand splits and hundreds of readers that is the
// difference between milliseconds and a blocked coordinator.
type leastOwner struct {
	floor  int // the smallest count
	cursor int // readers before it own more than floor; zero: look for the floor first
}

func (l *leastOwner) find(p Placement) sdk.ReaderID {
	for {
		if l.cursor == 0 {
			l.floor = p.Owned[p.Readers[0]]
			for _, r := range p.Readers {
				l.floor = min(l.floor, p.Owned[r])
			}
		}
		for ; l.cursor < len(p.Readers); l.cursor++ {
			if r := p.Readers[l.cursor]; p.Owned[r] == l.floor {
				return r
			}
		}
		l.cursor = 0
	}
}

// RoundRobin places splits on the registered readers in turn.
func RoundRobin[S sdk.Split](_ S, p Placement) sdk.ReaderID {
	return p.Readers[p.Placed%len(p.Readers)]
}

// ByHash places a split by its id alone: the same split always meets the same reader while the parallelism stays.
func ByHash[S sdk.Split](split S, p Placement) sdk.ReaderID {
	h := fnv.New32a()
	_, _ = h.Write([]byte(split.SplitID())) // a hash never fails
	return sdk.ReaderID(h.Sum32() % uint32(p.Parallelism))
}
