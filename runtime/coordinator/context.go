package coordinator

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// maxSplitsPerCommand keeps one command from growing without bound; the payload limit does the same in bytes.
const maxSplitsPerCommand = 1024

// maxQueued bounds the commands that wait for one reader. It stays below what a mailbox tolerates in sequence gaps, so that a
// barrier can pass all of them.
const maxQueued = protocol.MaxGaps / 2

// splitOverhead is what the wire format adds to a split at most.
const splitOverhead = 32

// enumeratorContext is what the enumerator sees of the loop. After the epoch is over it does nothing.
type enumeratorContext struct {
	*scheduler
	l *Loop
}

func (c *enumeratorContext) Parallelism() int     { return c.l.cfg.Parallelism }
func (c *enumeratorContext) Logger() *slog.Logger { return c.l.cfg.Logger }
func (c *enumeratorContext) Metrics() sdk.Metrics { return c.l.cfg.Metrics }

func (c *enumeratorContext) Readers() []sdk.ReaderID {
	var ids []sdk.ReaderID
	for _, t := range c.l.sorted() {
		if t.registered {
			ids = append(ids, t.id)
		}
	}
	return ids
}

func (c *enumeratorContext) RequestCheckpoint() bool {
	if !c.l.cfg.Checkpoints {
		return false
	}
	if !c.l.over() {
		c.l.cfg.Reports.CheckpointWanted(c.l.cfg.Epoch)
	}
	return true
}

func (c *enumeratorContext) registered(id sdk.ReaderID) (*target, error) {
	if t := c.l.targets[id]; t != nil && t.registered {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %d of %d", ErrNotRegistered, id, c.l.cfg.Parallelism)
}

// Assign records the assignment in the tracker before anything of it is sent.
func (c *enumeratorContext) Assign(id sdk.ReaderID, splits []protocol.Split) error {
	l := c.l
	if l.over() || len(splits) == 0 {
		return nil
	}
	t, err := c.registered(id)
	if err != nil {
		return err
	}
	if !l.tracker.Room(splits) {
		l.cfg.Stats.Backpressure.Inc()
		if l.cfg.Checkpoints && l.tracker.Ripe() { // a job may take checkpoints only where something waits for one
			l.cfg.Reports.CheckpointWanted(l.cfg.Epoch)
		}
		return fmt.Errorf("assign %d splits to reader %d: %w", len(splits), id, sdk.ErrBackpressure)
	}
	chunks, err := chunk(splits, l.cfg.PayloadBytes)
	if err != nil {
		return err
	}
	if len(t.queue) > 0 && len(t.queue)+len(chunks) > maxQueued {
		l.cfg.Stats.Backpressure.Inc()
		return fmt.Errorf("assign to reader %d, which has %d commands waiting: %w", id, len(t.queue), sdk.ErrBackpressure)
	}
	for _, part := range chunks {
		e, err := l.command(t, protocol.AddSplits, protocol.AddSplitsPayload{Splits: part})
		if err != nil {
			return sdk.Fatal(err)
		}
		l.tracker.Dispatch(protocol.Assignment{
			Reader: id, Target: t.attempt, Epoch: l.cfg.Epoch, Sequence: e.Sequence, Splits: part,
		}, l.cfg.Now())
		l.send(t, e)
	}
	return nil
}

// chunk cuts an assignment into commands that fit the payload limit.
func chunk(splits []protocol.Split, limit int) ([][]protocol.Split, error) {
	var out [][]protocol.Split
	from, bytes := 0, 0
	for i, s := range splits {
		n := len(s.ID) + len(s.Data.Data) + splitOverhead
		if n > limit {
			return nil, sdk.Fatalf("split %s is %d bytes encoded, a command holds %d (runtime.command_payload_bytes)", s.ID, n, limit)
		}
		if i > from && (bytes+n > limit || i-from == maxSplitsPerCommand) {
			out = append(out, splits[from:i])
			from, bytes = i, 0
		}
		bytes += n
	}
	return append(out, splits[from:]), nil
}

func (c *enumeratorContext) NoMoreSplits(id sdk.ReaderID) error {
	if c.l.over() {
		return nil
	}
	t, err := c.registered(id)
	if err != nil {
		return err
	}
	c.l.owing = false
	if slices.ContainsFunc(t.queue, func(e *protocol.Envelope) bool { return e.Kind == protocol.NoMoreSplits }) {
		return nil // it waits already; saying it over and over must not make the queue grow
	}
	e, err := c.l.command(t, protocol.NoMoreSplits, protocol.NoMoreSplitsPayload{Generation: c.l.generation + 1})
	if err != nil {
		return sdk.Fatal(err)
	}
	c.l.generation++
	c.l.send(t, e)
	return nil
}

func (c *enumeratorContext) SendEvent(id sdk.ReaderID, event sdk.Event) bool {
	t, err := c.registered(id)
	if c.l.over() || err != nil || t.events >= maxReaderEvents || len(event.Data.Data) > c.l.cfg.PayloadBytes/2 {
		c.l.cfg.Stats.EventsDropped.Inc()
		return false
	}
	e, err := c.l.command(t, protocol.SourceEvent, protocol.SourceEventPayload{Event: event})
	if err != nil {
		c.l.cfg.Logger.Warn("event cannot be encoded", "reader", int(id), "error", err)
		return false
	}
	t.events++
	c.l.send(t, e)
	return true
}
