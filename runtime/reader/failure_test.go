package reader

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/runtime/lifecycle"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// A terminal signal, or a fence, that comes while the snapshot is taken fails that checkpoint: neither is it acknowledged nor
// does the barrier go on.
func TestSignalBetweenSnapshotAndAcknowledgement(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]func(*Loop){"terminal": (*Loop).Terminal, "fence": (*Loop).Fence} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 4, nil)
				r.script.when("Snapshot", func() error { signal(r.loop); return nil })
				r.offer(protocol.Barrier, protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
				r.settle()
				if strings.Contains(r.log(), "acknowledged") || len(r.received()) != 0 {
					t.Errorf("the checkpoint went on: %s", r.log())
				}
			})
		})
	}
}

func TestSchemaChangeFailures(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(r *rig){
		"aborted": func(r *rig) {
			r.offer(protocol.CheckpointAborted, protocol.CheckpointPayload{Checkpoint: 9})
		},
		"overlap": func(r *rig) {
			r.offer(protocol.SchemaChangeBegin, protocol.SchemaChangePayload{Checkpoint: 10, Request: 2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := started(t, 4, nil)
				r.offer(protocol.SchemaChangeBegin, protocol.SchemaChangePayload{Checkpoint: 9, Request: 1})
				then(r)
				r.settle()
				if err := r.failed(); !errors.Is(err, lifecycle.ErrSchemaChange) || !errors.Is(err, sdk.ErrFatal) {
					t.Errorf("failure is %v", err)
				}
			})
		})
	}
}

// Every call of the connector, failing and panicking: the attempt fails once, with that error, and the reader is closed once.
func TestFailureInAnyCallFailsTheAttemptOnce(t *testing.T) {
	t.Parallel()
	trigger := map[string]func(*rig){
		"NewReader": func(*rig) {}, "Open": func(*rig) {},
		"Poll":      func(r *rig) { r.script.ctx.NotifyAvailable() },
		"AddSplits": func(r *rig) { r.assign("a") },
		"Snapshot": func(r *rig) {
			r.offer(protocol.Barrier, protocol.BarrierPayload{Checkpoint: 1, Kind: protocol.Periodic})
		},
		"NoMoreSplits":       func(r *rig) { r.offer(protocol.NoMoreSplits, protocol.NoMoreSplitsPayload{Generation: 1}) },
		"HandleEvent":        func(r *rig) { r.offer(protocol.SourceEvent, eventPayload("e")) },
		"PauseOrResume":      func(r *rig) { r.offer(protocol.PauseOrResume, protocol.PauseOrResumePayload{}) },
		"CheckpointComplete": func(r *rig) { r.offer(protocol.CheckpointComplete, protocol.CheckpointPayload{Checkpoint: 1}) },
		"CheckpointAborted":  func(r *rig) { r.offer(protocol.CheckpointAborted, protocol.CheckpointPayload{Checkpoint: 1}) },
	}
	failure := errors.New("scripted failure")
	for call, act := range trigger {
		for how, fail := range map[string]func() error{
			"error": func() error { return failure },
			"panic": func() error { panic(failure) },
		} {
			t.Run(call+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t, 4, nil)
					if call == "NewReader" || call == "Open" {
						r.script.when(call, fail)
						r.start()
					} else {
						r.start()
						r.offer(protocol.Register, protocol.RegisterPayload{})
						r.settle()
						r.script.when(call, fail)
					}
					act(r)
					r.settle()
					err := r.failed()
					_, panicked := errors.AsType[*connector.PanicError](err)
					if !errors.Is(err, failure) || panicked != (how == "panic") || r.count("failed") != 1 {
						t.Errorf("failure is %v, reported %d times", err, r.count("failed"))
					}
					closes := 1
					if call == "NewReader" {
						closes = 0 // there is nothing to close
					}
					<-r.loop.Done()
					if r.count("close") != closes {
						t.Errorf("closed %d times", r.count("close"))
					}
					if strings.Contains(r.log(), "acknowledged") {
						t.Error("a snapshot was acknowledged")
					}
				})
			})
		}
	}
}

// A failure to close is logged and changes nothing more; a panic in Wakeup, which runs on others' goroutines, neither.
func TestFailingCloseAndWakeupAreSurvived(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.script.when("Close", func() error { panic("close") })
		r.script.when("Wakeup", func() error { panic("wakeup") })
		r.stop()
		if r.failed() != nil || r.count("close") != 1 {
			t.Errorf("failure %v, journal %s", r.failed(), r.log())
		}
	})
}

func TestUnknownPollStatusIsFatal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.script.polls(func(*sdk.Turn, sdk.Output) (sdk.PollStatus, error) { return 9, nil })
		r.script.ctx.NotifyAvailable()
		r.settle()
		if !errors.Is(r.failed(), sdk.ErrFatal) {
			t.Errorf("failure is %v", r.failed())
		}
	})
}

// An attempt that is cancelled while it opens has not failed, and was never open.
func TestTerminalWhileOpening(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"open succeeds": nil, "open returns an error": sdk.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, 4, nil)
				r.script.when("Open", func() error { r.loop.Terminal(); return answer })
				r.start()
				<-r.loop.Done()
				r.want("journal", "new reader, open, wakeup, close")
			})
		})
	}
}

func TestTerminalBeforeOpening(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, nil)
		r.script.when("NewReader", func() error { r.loop.Terminal(); return nil })
		r.start()
		<-r.loop.Done()
		r.want("journal", "new reader, close")
	})
}

// The reader's context does nothing after the fence.
func TestContextOfAFencedAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := started(t, 4, nil)
		r.script.ctx.RequestSplit()
		if !r.script.ctx.SendEvent(sdk.Event{Kind: "hello"}) || r.script.ctx.Reader() != readerID || r.script.ctx.Parallelism() != 3 ||
			r.script.ctx.Logger() == nil || r.script.ctx.Metrics() == nil {
			t.Error("the context is not what it should be")
		}
		r.want("before", "request, sent hello", "poll")
		r.forget()
		r.loop.Fence()
		r.loop.Terminal()
		<-r.loop.Done()
		r.script.ctx.RequestSplit()
		r.script.ctx.NotifyAvailable()
		if r.script.ctx.SendEvent(sdk.Event{Kind: "late"}) {
			t.Error("an event of a fenced attempt was taken")
		}
		r.want("after", "wakeup, close")
	})
}
