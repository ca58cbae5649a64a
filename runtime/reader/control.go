package reader

import (
	"fmt"

	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/runtime/watchdog"
	"github.com/penstock-dev/penstock/sdk"
)

// control takes one ordered command and applies it.
func (l *Loop) control() error {
	entry, ok := l.mailbox.Take()
	if !ok {
		return nil
	}
	e := entry.Envelope
	start := l.cfg.Now()
	switch v := l.core.judge(e); v {
	case apply:
	case discardStale, discardRepeat, discardOverrun:
		l.cfg.Stats.StaleCommands.Inc()
		return nil
	}
	l.call.Begin(watchdog.Control, start)
	err := l.apply(e)
	l.call.End()
	end := l.cfg.Now()
	l.cfg.Stats.QueueWait.Observe(start.Sub(entry.Admitted))
	l.cfg.Stats.CommandService.Observe(end.Sub(start))
	if e.Kind == protocol.Barrier {
		l.cfg.Stats.Stages[telemetry.StageBarrierWait].Observe(start.Sub(entry.Admitted))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.Kind, err)
	}
	l.measureMailbox()
	return nil
}

func (l *Loop) measureMailbox() {
	mark, stats := l.core.applied.Watermark(l.core.epoch), l.mailbox.Stats()
	s := l.cfg.Stats
	s.AppliedEpoch.Set(int64(mark.Epoch))
	s.AppliedSequence.Set(int64(mark.Applied))
	s.WatermarkGaps.Set(int64(len(mark.Gaps)))
	s.Splits.Set(int64(len(l.core.owned)))
	s.MailboxCommands.Set(int64(stats.Commands + stats.ReservedCommands))
	s.MailboxBytes.Set(stats.Bytes + stats.ReservedBytes)
	s.ReservedCommands.Set(int64(stats.ReservedCommands))
	s.ReservedBytes.Set(stats.ReservedBytes)
	s.OldestCommand.Set(stats.Oldest)
}

// apply performs the command and marks it applied: before the snapshot for a barrier, so that the watermark in the
// checkpoint contains the barrier itself, and after the effect for all others.
func (l *Loop) apply(e *protocol.Envelope) error {
	if e.Kind == protocol.Barrier {
		l.core.markApplied(e)
		return l.barrier(e)
	}
	if err := l.effect(e); err != nil {
		return err
	}
	if e.Kind == protocol.Register {
		return nil // marked, and answered, inside
	}
	at := seam.At{Point: seam.Applying, Epoch: e.Epoch, Kind: e.Kind, Sequence: e.Sequence}
	if err := l.reach(at); err != nil {
		return err
	}
	l.core.markApplied(e)
	at.Point = seam.Applied
	if err := l.reach(at); err != nil {
		return err
	}
	if !l.fenced.Load() {
		l.cfg.Coordinator.Applied(l.cfg.Reader, l.cfg.Attempt, l.core.applied.Watermark(l.core.epoch))
	}
	at.Point = seam.ApplyAcknowledged
	return l.reach(at)
}

func (l *Loop) effect(e *protocol.Envelope) error {
	switch e.Kind {
	case protocol.Register:
		return l.register(e)
	case protocol.AddSplits:
		return l.addSplits(e)
	case protocol.NoMoreSplits:
		p, err := protocol.DecodeNoMoreSplits(e.PayloadVersion, e.Payload)
		if err != nil {
			return err
		}
		l.core.generation = max(l.core.generation, p.Generation)
		l.wanting.Store(false)
		return l.reader.NoMoreSplits()
	case protocol.SourceEvent:
		p, err := protocol.DecodeSourceEvent(e.PayloadVersion, e.Payload)
		if err != nil {
			return err
		}
		return l.reader.HandleEvent(p.Event)
	case protocol.PauseOrResume:
		p, err := protocol.DecodePauseOrResume(e.PayloadVersion, e.Payload)
		if err != nil {
			return err
		}
		return l.reader.PauseOrResume(p.Pause, p.Resume)
	case protocol.CheckpointComplete, protocol.CheckpointAborted:
		return l.checkpointEnded(e)
	case protocol.GracefulClose:
		return l.drain()
	case protocol.SchemaChangeBegin, protocol.SchemaChangeEnd:
		return l.schemaChange(e)
	case protocol.Barrier:
		return nil // see apply
	default:
		return sdk.Fatalf("unknown command kind %d", e.Kind)
	}
}

// register raises the epoch first and answers then: commands of older epochs that still wait in the mailbox are discarded
// when their turn comes. Otherwise a split that the old coordinator sent would be applied after the new one gave it away.
func (l *Loop) register(e *protocol.Envelope) error {
	l.core.markApplied(e)
	if !l.fenced.Load() {
		l.cfg.Coordinator.Registered(l.cfg.Reader, l.cfg.Attempt, e.Epoch, l.core.registration())
	}
	if l.wanting.Load() {
		l.requestSplit()
	}
	return nil
}

func (l *Loop) addSplits(e *protocol.Envelope) error {
	p, err := protocol.DecodeAddSplits(e.PayloadVersion, e.Payload)
	if err != nil {
		return err
	}
	l.wanting.Store(false) // before the reader is told, which may ask for the next one
	ended := l.core.ended
	fresh := l.core.adopt(p.Splits)
	if len(fresh) == 0 {
		return nil
	}
	if ended {
		l.reportEnded(false)
	}
	return l.reader.AddSplits(fresh)
}

// barrier cuts: every command admitted before it is applied, no turn runs. State is registered and acknowledged before the
// barrier is forwarded, and a terminal signal in between fails the checkpoint.
func (l *Loop) barrier(e *protocol.Envelope) error {
	p, err := protocol.DecodeBarrier(e.PayloadVersion, e.Payload)
	if err != nil {
		return err
	}
	start := l.cfg.Now()
	splits, err := l.reader.Snapshot(p.Checkpoint)
	if err != nil {
		return err
	}
	at := seam.At{Point: seam.Snapshotted, Epoch: e.Epoch, Kind: e.Kind, Sequence: e.Sequence, Checkpoint: p.Checkpoint}
	if err := l.reach(at); err != nil {
		return err
	}
	taken := l.cfg.Now()
	if l.terminal.Load() || l.fenced.Load() {
		return nil
	}
	state := protocol.ReaderState{
		Reader: l.cfg.Reader, Splits: splits, Finished: l.core.finished(), Ended: l.core.ended, Metadata: l.core.metadata(),
	}
	l.core.snapshotted(p.Checkpoint)
	if p.Kind == protocol.Stop {
		l.core.stopping = p.Checkpoint
	}
	at.Point = seam.StateRegistered
	if err := l.reach(at); err != nil {
		return err
	}
	l.cfg.Reports.Snapshot(l.cfg.Reader, l.cfg.Attempt, p.Checkpoint, state)
	at.Point = seam.TaskAcknowledged
	if err := l.reach(at); err != nil {
		return err
	}
	registered := l.cfg.Now()
	l.router.Barrier(p)
	stages := &l.cfg.Stats.Stages
	stages[telemetry.StageSnapshot].Observe(taken.Sub(start))
	stages[telemetry.StageRegister].Observe(registered.Sub(taken))
	stages[telemetry.StageForward].Observe(l.cfg.Now().Sub(registered))
	return nil
}

func (l *Loop) checkpointEnded(e *protocol.Envelope) error {
	p, err := protocol.DecodeCheckpoint(e.PayloadVersion, e.Payload)
	if err != nil {
		return err
	}
	if e.Kind == protocol.CheckpointAborted {
		if l.core.stopping == p.Checkpoint {
			l.core.stopping = 0 // the job goes on until the next try
		}
		if err := l.schemaStep(lifecycle.SchemaEvent{Kind: lifecycle.SchemaAborted, Request: l.core.schema.Request(), Checkpoint: p.Checkpoint}); err != nil {
			return err
		}
		return l.reader.CheckpointAborted(p.Checkpoint)
	}
	l.core.completed(p.Checkpoint)
	if err := l.reader.CheckpointComplete(p.Checkpoint); err != nil {
		return err
	}
	return l.schemaStep(lifecycle.SchemaEvent{Kind: lifecycle.SchemaComplete, Request: l.core.schema.Request(), Checkpoint: p.Checkpoint})
}

// drain is a graceful close: no turn runs any more, or, during a schema change, none after it.
func (l *Loop) drain() error {
	return l.schemaStep(lifecycle.SchemaEvent{Kind: lifecycle.SchemaCloseLatched})
}

// schemaChange binds a change to its checkpoint: the loop is between turns here, so it is quiesced at once.
func (l *Loop) schemaChange(e *protocol.Envelope) error {
	p, err := protocol.DecodeSchemaChange(e.PayloadVersion, e.Payload)
	if err != nil {
		return err
	}
	if e.Kind == protocol.SchemaChangeEnd {
		return l.schemaStep(lifecycle.SchemaEvent{Kind: lifecycle.SchemaComplete, Request: p.Request, Checkpoint: p.Checkpoint})
	}
	for _, k := range []lifecycle.SchemaEventKind{lifecycle.SchemaBegin, lifecycle.SchemaQuiesced, lifecycle.SchemaTriggered} {
		if err := l.schemaStep(lifecycle.SchemaEvent{Kind: k, Request: p.Request, Checkpoint: p.Checkpoint}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) schemaStep(e lifecycle.SchemaEvent) error {
	outcome, err := l.core.schema.Step(e)
	if err != nil {
		return sdk.Fatal(err)
	}
	if outcome == lifecycle.SchemaDrain && l.core.main.State() == lifecycle.Running {
		l.step(lifecycle.Drain)
	}
	return nil
}
