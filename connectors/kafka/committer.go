package kafka

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

const (
	// commitWithin bounds one commit, the client's retries included.
	commitWithin = 10 * time.Second
	// lastCommitWithin bounds what a close waits for the positions of the last checkpoint.
	lastCommitWithin = 2 * time.Second
	// commitRetries is how often the client tries one request; what failed is part of the next commit.
	commitRetries = 3
)

// committer commits the positions of completed checkpoints to a consumer group, beside the reading and the checkpoints, which depend
// on it in nothing. There is one commit in flight; what completes meanwhile waits, the newest position of a partition in place
// of older ones. A failure is counted, logged, and part of the next commit.
type committer struct {
	source Source
	log    limitedLog

	commits, failures sdk.Counter
	failing           sdk.Gauge

	ring   chan struct{} // one slot
	quit   chan struct{} // closed by close
	done   chan struct{} // closed when the goroutine ended
	cancel context.CancelFunc

	mu struct {
		sync.Mutex
		pending map[place]Split
	}

	// Of the goroutine.
	committed map[place]Split
	inARow    int
}

// newCommitter starts the goroutine. Nothing connects before the first checkpoint completes.
func newCommitter(source Source, m sdk.Metrics, log *slog.Logger) *committer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &committer{
		source: source, log: newLimitedLog(log),
		commits:  m.Counter("offset_commits", "1", "Commits to the group commit_group that worked."),
		failures: m.Counter("offset_commit_failures", "1", "Commits to the group that failed. Nothing but the group's offsets suffers."),
		failing:  m.Gauge("offset_commit_failures_in_a_row", "1", "Commits that failed since the last one that worked."),
		ring:     make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), cancel: cancel,
		committed: make(map[place]Split),
	}
	c.mu.pending = make(map[place]Split)
	go c.run(ctx)
	return c
}

// offer takes the splits of a completed checkpoint. It is called on the reader loop and does not block. What is kept is at most one
// position for each partition that the reader ever held.
func (c *committer) offer(splits []Split) {
	c.mu.Lock()
	for _, s := range splits {
		c.mu.pending[s.place()] = s
	}
	c.mu.Unlock()
	select {
	case c.ring <- struct{}{}:
	default:
	}
}

// close ends the goroutine, after one attempt at what is pending.
func (c *committer) close() {
	close(c.quit)
	timer := time.AfterFunc(lastCommitWithin, c.cancel)
	<-c.done
	timer.Stop()
	c.cancel()
}

func (c *committer) run(ctx context.Context) {
	defer close(c.done)
	var ask cluster
	defer func() {
		if ask.client != nil {
			ask.client.Close()
		}
	}()
	for last := false; !last && ctx.Err() == nil; {
		select {
		case <-c.ring:
		case <-c.quit:
			last = true
		}
		batch := c.take()
		if len(batch) == 0 {
			continue
		}
		if ask.client == nil {
			client, err := c.source.askingClient(commitRetries)
			if err != nil {
				c.failed(batch, err)
				continue
			}
			ask = c.source.ask(client)
		}
		c.commit(ctx, ask, batch)
	}
}

// take returns what moved since it was committed last.
func (c *committer) take() map[place]Split {
	c.mu.Lock()
	batch := c.mu.pending
	c.mu.pending = make(map[place]Split)
	c.mu.Unlock()
	maps.DeleteFunc(batch, func(at place, s Split) bool { return !moved(c.committed[at], s) })
	return batch
}

// moved reports that s is to be committed after before: it is further on, or of another topic under the name, or the position was moved
// back on purpose.
func moved(before, s Split) bool {
	return before.Topic == "" || s.TopicID != before.TopicID || s.Offset > before.Offset || s.Epoch > before.Epoch && s.Offset != before.Offset
}

func (c *committer) commit(ctx context.Context, ask cluster, batch map[place]Split) {
	within, cancel := context.WithTimeout(ctx, commitWithin)
	defer cancel()
	if err := ask.commit(within, c.source.CommitGroup, batch); err != nil {
		c.failed(batch, err)
		return
	}
	maps.Copy(c.committed, batch)
	c.inARow = 0
	c.commits.Add(1)
	c.failing.Set(0)
}

// failed puts the batch back, below what came meanwhile.
func (c *committer) failed(batch map[place]Split, err error) {
	c.mu.Lock()
	for at, s := range batch {
		if _, newer := c.mu.pending[at]; !newer {
			c.mu.pending[at] = s
		}
	}
	c.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		err = errors.New("it was not done when the reader closed")
	}
	c.inARow++
	c.failures.Add(1)
	c.failing.Set(float64(c.inARow))
	c.log.warn("positions were not committed to the group; the next checkpoint commits them", "group", c.source.CommitGroup,
		"partitions", len(batch), "failures_in_a_row", c.inARow, "error", err)
}
