package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// checkState asks the source whether a saved state fits its configuration, before anything runs: also for a job that had
// finished, which would otherwise ignore in silence what was changed since. The enumerator is made and closed, not
// started, so it does no I/O.
func checkState(j Job, m *protocol.Manifest) error {
	state := m.Coordinator.Enumerator
	e, err := j.Source.NewEnumerator(inert{j}, &state)
	if err != nil {
		return fmt.Errorf("source %s: checkpoint %d: %w", j.Source.Capability().Connector, m.ID, err)
	}
	return e.Close()
}

// inert is the context of an enumerator that is never started.
type inert struct{ j Job }

func (inert) Call(string, func(context.Context) (any, error), func(any, error), sdk.CallOptions) {}
func (inert) Schedule(string, time.Duration, func())                                             {}
func (inert) Cancel(string)                                                                      {}
func (c inert) Parallelism() int                                                                 { return c.j.Parallelism }

func (inert) Readers() []sdk.ReaderID { return nil }

func (inert) Assign(sdk.ReaderID, []protocol.Split) error { return nil }

func (inert) NoMoreSplits(sdk.ReaderID) error { return nil }

func (inert) SendEvent(sdk.ReaderID, sdk.Event) bool { return false }

func (inert) RequestCheckpoint() bool { return false }

func (inert) Logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (inert) Metrics() sdk.Metrics { return sdk.DiscardMetrics }
