package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// bounds are where a log begins, where it ends for the isolation, and where it ends. Each is negative when not known.
type bounds struct{ start, end, last int64 }

// enough reports that what has to be decided about p can be.
func (b bounds) enough(p *partition) bool {
	switch {
	case p.newID != [16]byte{}:
		return b.start >= 0
	case p.doubt == offLimits, p.doubt == divergent:
		return b.start >= 0 && b.end >= 0 && b.last >= 0
	default:
		return true
	}
}

// answers are bounds by place.
type answers struct {
	start, end, last map[place]listed
	failures         [3]map[place]error
}

func (a *answers) of(p place) bounds {
	read := func(from map[place]listed) int64 {
		if at, ok := from[p]; ok {
			return at.offset
		}
		return -1
	}
	return bounds{read(a.start), read(a.end), read(a.last)}
}

// failure is why something about p is not known.
func (a *answers) failure(p place) error {
	for _, failures := range a.failures {
		if err := failures[p]; err != nil {
			return err
		}
	}
	return kerr.LeaderNotAvailable
}

// boundsWithin limits the question where logs begin and end before the first fetch, which finds out by itself without an answer.
const boundsWithin = time.Second

// bounds asks for all of them at once: this is what a restart of a thousand partitions waits for. It ends with ctx only; a slow
// answer is no error unless a doubt needs it.
func (f *fetcher) bounds(ctx context.Context, parts []*partition) (*answers, error) {
	var all, doubted []place
	for _, p := range parts {
		all = append(all, p.place())
		if p.doubt != noDoubt {
			doubted = append(doubted, p.place())
		}
	}
	within, cancel := context.WithTimeout(ctx, boundsWithin)
	defer cancel()
	var (
		found answers
		wait  sync.WaitGroup
	)
	wait.Go(func() { found.start, found.failures[0] = f.cluster.list(within, all, askEarliest, ReadUncommitted) })
	wait.Go(func() { found.end, found.failures[1] = f.cluster.list(within, all, askLatest, f.source.Isolation) })
	wait.Go(func() { found.last, found.failures[2] = f.cluster.list(within, doubted, askLatest, ReadUncommitted) })
	wait.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &found, nil
}
