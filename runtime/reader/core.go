package reader

import (
	"maps"
	"slices"

	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/mailbox"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// maxLineage bounds the attempts in the metadata.
const maxLineage = 16

// action is what the loop does next.
type action uint8

const (
	actTerminal action = iota // leave the loop
	actControl                // take one ordered control
	actPoll                   // run one turn
	actPark                   // wait for the doorbell
)

func (a action) String() string {
	return [...]string{"terminal", "control", "poll", "park"}[a]
}

// inputs is what the loop sees of the outside world before a step.
type inputs struct {
	terminal bool
	controls bool // the mailbox is not empty
	notified bool // the connector rang since the last step
	credit   bool // the exchange has room for one turn
}

// verdict says what becomes of a command at apply.
type verdict uint8

const (
	apply          verdict = iota
	discardStale           // an older coordinator epoch, after a newer one was answered
	discardRepeat          // this sequence was applied before
	discardOverrun         // too many earlier commands are missing; the mailbox's window makes this unreachable
)

func (v verdict) String() string {
	return [...]string{"apply", "discard-stale", "discard-repeat", "discard-overrun"}[v]
}

// core decides for one attempt. It has no goroutine, clock, I/O or logger; the loop owns it.
type core struct {
	lineage []protocol.Attempt
	digest  string

	epoch   protocol.Epoch // newest answered
	applied mailbox.Window // of that epoch

	main       lifecycle.Machine
	schema     lifecycle.Schema
	armed      bool // a poll is due
	ended      bool // the last poll returned EndOfInput
	stopping   sdk.CheckpointID
	generation uint64

	owned    map[sdk.SplitID]*holding // held and unfinished
	evidence map[sdk.SplitID]*holding // finished, not yet released
}

// holding is one split that this attempt answers for.
type holding struct {
	// assigned is the split as it came in. It is kept until a completed checkpoint contains the split, so that a coordinator
	// restored from an older one can adopt it; restored splits come from such a checkpoint.
	assigned protocol.Split
	restored bool
	final    protocol.Split   // evidence only
	included sdk.CheckpointID // first checkpoint that contains it in its present form
}

func newCore(lineage []protocol.Attempt, digest string, restored, finished []protocol.Split, generation uint64) *core {
	if n := len(lineage); n > maxLineage {
		lineage = lineage[n-maxLineage:]
	}
	c := &core{
		lineage: slices.Clone(lineage), digest: digest, generation: generation, armed: true,
		owned: map[sdk.SplitID]*holding{}, evidence: map[sdk.SplitID]*holding{},
	}
	for _, s := range restored {
		c.owned[s.ID] = &holding{assigned: s, restored: true}
	}
	for _, s := range finished {
		c.evidence[s.ID] = &holding{assigned: s, final: s, restored: true}
	}
	return c
}

// next chooses: terminal, else a control, else a turn, else wait.
func (c *core) next(in inputs) action {
	if in.notified {
		c.armed = true
	}
	switch {
	case in.terminal:
		return actTerminal
	case in.controls:
		return actControl
	case c.armed && c.mayPoll() && in.credit:
		return actPoll
	default:
		return actPark
	}
}

// mayPoll reports whether a turn is allowed at all. An attempt that drains has read its last record, one that stops has
// passed the last barrier, and a schema change lets no new turn run.
func (c *core) mayPoll() bool {
	return c.main.State() == lifecycle.Running && c.stopping == 0 && !c.ended && c.schema.MayPoll()
}

// starved reports that only missing credit keeps the loop from polling.
func (c *core) starved(credit bool) bool { return c.armed && c.mayPoll() && !credit }

// judge decides before anything of a command is applied.
func (c *core) judge(e *protocol.Envelope) verdict {
	switch {
	case e.Epoch < c.epoch:
		return discardStale
	case e.Epoch > c.epoch:
		return apply // only a registration raises the epoch; see register
	case c.applied.Seen(e.Sequence):
		return discardRepeat
	default:
		return apply
	}
}

// markApplied notes that the command's effect is complete, and arms a poll: every control may have brought work.
func (c *core) markApplied(e *protocol.Envelope) verdict {
	if e.Epoch > c.epoch {
		c.epoch, c.applied = e.Epoch, mailbox.Window{}
	}
	c.armed = true
	if _, ok := c.applied.Add(e.Sequence); !ok {
		return discardOverrun
	}
	return apply
}

// adopt takes new splits and returns those that are new to this attempt.
func (c *core) adopt(splits []protocol.Split) []protocol.Split {
	fresh := make([]protocol.Split, 0, len(splits))
	for _, s := range splits {
		if c.owned[s.ID] != nil || c.evidence[s.ID] != nil {
			continue
		}
		c.owned[s.ID] = &holding{assigned: s}
		fresh = append(fresh, s)
	}
	if len(fresh) > 0 {
		c.ended = false
	}
	return fresh
}

// finish turns an owned split into evidence.
func (c *core) finish(final protocol.Split) {
	h := c.owned[final.ID]
	if h == nil {
		return
	}
	delete(c.owned, final.ID)
	h.final, h.included = final, 0
	c.evidence[final.ID] = h
}

// snapshotted notes that checkpoint id contains everything as it is now.
func (c *core) snapshotted(id sdk.CheckpointID) {
	for _, h := range c.owned {
		if h.included == 0 {
			h.included = id
		}
	}
	for _, h := range c.evidence {
		if h.included == 0 {
			h.included = id
		}
	}
}

// completed releases what a completed checkpoint contains. Evidence that finished after its snapshot stays: dropping it
// with an older checkpoint would lose the end of a split (FLINK-37416).
func (c *core) completed(id sdk.CheckpointID) {
	for _, h := range c.owned {
		if h.included != 0 && h.included <= id {
			h.restored, h.assigned = true, protocol.Split{ID: h.assigned.ID}
		}
	}
	maps.DeleteFunc(c.evidence, func(_ sdk.SplitID, h *holding) bool { return h.included != 0 && h.included <= id })
}

// metadata is the engine's part of a snapshot.
func (c *core) metadata() protocol.Metadata {
	return protocol.Metadata{
		MetadataVersion: protocol.MetadataVersion, CommandProtocolVersion: protocol.Version,
		ManagedLaneVersion: protocol.ManagedLaneVersion, Lineage: slices.Clone(c.lineage),
		Watermarks: []protocol.Watermark{c.applied.Watermark(c.epoch)}, NoMoreSplitsGeneration: c.generation,
		CapabilityDigest: c.digest,
	}
}

func (c *core) finished() []protocol.Split {
	out := make([]protocol.Split, 0, len(c.evidence))
	for _, id := range slices.Sorted(maps.Keys(c.evidence)) {
		out = append(out, c.evidence[id].final)
	}
	return out
}

// registration is the answer to a new coordinator epoch. It is taken after the epoch was raised, so that no older command
// can be applied behind it.
func (c *core) registration() Registration {
	r := Registration{Watermark: c.applied.Watermark(c.epoch), Generation: c.generation, Ended: c.ended}
	for _, id := range slices.Sorted(maps.Keys(c.owned)) {
		r.Owned = append(r.Owned, c.owned[id].held())
	}
	for _, id := range slices.Sorted(maps.Keys(c.evidence)) {
		r.Finished = append(r.Finished, c.evidence[id].held())
	}
	return r
}

func (h *holding) held() Held { return Held{Split: h.assigned, Durable: h.restored} }
