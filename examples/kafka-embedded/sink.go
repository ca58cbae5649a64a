package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/penstock-dev/penstock/sdk"
)

// sink adds up rides into a ledger.
type sink struct{ ledger *ledger }

func (s *sink) Name() string { return "takings" }

func (s *sink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	return &writer{ledger: s.ledger, task: ctx.Task(), restored: ctx.Restored(), sums: newSums()}, nil
}

// sumsVersion is the version of the bytes in checkpoints.
const sumsVersion = 1

// sums is what one task added up between two checkpoints. It says where it belongs, since whoever commits it may be another process
// with another number of tasks.
type sums struct {
	Version    int                `json:"version"`
	Task       int                `json:"task"`
	Checkpoint sdk.CheckpointID   `json:"checkpoint"`
	Unreadable int64              `json:"unreadable,omitempty"`
	Drivers    map[string]takings `json:"drivers"`
}

func newSums() sums { return sums{Version: sumsVersion, Drivers: map[string]takings{}} }

// maxDrivers bounds the memory of a task, and its share of a checkpoint.
const maxDrivers = 100_000

// writer is the writer of one sink task. One goroutine uses it, so it needs no lock.
type writer struct {
	ledger   *ledger
	task     int
	restored sdk.CheckpointID
	sums     sums // since the last Prepare
}

var _ sdk.Committer = (*writer)(nil) // without it the sink would silently be at least once

func (w *writer) Open(context.Context) error  { return nil }
func (w *writer) Flush(context.Context) error { return nil } // never called: Prepare is

// Close forgets what no checkpoint contains. It is read again.
func (w *writer) Close(context.Context) error { return nil }

// Write adds up. Nothing of it can be seen yet.
func (w *writer) Write(_ context.Context, batch *sdk.Batch) error {
	for rec := range batch.All() {
		driver, cents, ok := readRide(rec.Value)
		if !ok {
			// It cannot be read tomorrow either: an error would start the task again, for ever.
			w.sums.Unreadable++
			continue
		}
		sum := w.sums.Drivers[driver]
		w.sums.Drivers[driver] = takings{Rides: sum.Rides + 1, Cents: sum.Cents + cents}
	}
	if n := len(w.sums.Drivers); n > maxDrivers {
		return sdk.Fatalf("%d drivers between two checkpoints, at most %d fit: take checkpoints more often", n, maxDrivers)
	}
	return nil
}

// readRide returns what outlives the record, whose bytes are valid only until Write returns.
func readRide(value []byte) (driver string, cents int64, ok bool) {
	var ride struct {
		Driver string
		Fare   float64
	}
	const dearest = 1_000_000
	if err := json.Unmarshal(value, &ride); err != nil || ride.Driver == "" || ride.Fare < 0 || ride.Fare > dearest {
		return "", 0, false
	}
	return ride.Driver, int64(math.Round(ride.Fare * 100)), true
}

// Prepare hands over what was added up since the last checkpoint. The engine writes it into the new one, which is all the durability
// it needs. A sink with more data than fits there stages it elsewhere, and hands over its name.
func (w *writer) Prepare(_ context.Context, checkpoint sdk.CheckpointID) ([]byte, error) {
	if len(w.sums.Drivers) == 0 && w.sums.Unreadable == 0 {
		return nil, nil // nothing to commit
	}
	w.sums.Task, w.sums.Checkpoint = w.task, checkpoint
	prepared, err := json.Marshal(w.sums)
	if err != nil {
		return nil, fmt.Errorf("takings: %w", err)
	}
	w.sums = newSums()
	return prepared, nil
}

// Commit makes it visible, once the checkpoint is complete. After a crash it comes again, and again after another one.
func (w *writer) Commit(_ context.Context, prepared []byte) error {
	s, err := decodeSums(prepared)
	if err != nil {
		return sdk.Fatal(err) // trying again would not help, and skipping would be loss
	}
	return w.ledger.add(s)
}

// Restore commits what the checkpoint holds: the process may have ended between the checkpoint and its commit. There is nothing
// else to clean up, since this sink leaves nothing outside of checkpoints and ledger.
func (w *writer) Restore(ctx context.Context, prepared [][]byte) error {
	if newest := w.ledger.newest(); newest > w.restored {
		return sdk.Fatalf("the ledger holds rides up to checkpoint %d, and the job goes on from checkpoint %d: those in between would be "+
			"counted twice. Bring back the state directory that belongs to %s, or move that file away", newest, w.restored, w.ledger.path)
	}
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func decodeSums(prepared []byte) (sums, error) {
	var s sums
	if err := json.Unmarshal(prepared, &s); err != nil {
		return s, fmt.Errorf("takings: what the checkpoint holds: %w", err)
	}
	if s.Version != sumsVersion {
		return s, fmt.Errorf("takings: the checkpoint holds version %d, this program knows %d", s.Version, sumsVersion)
	}
	return s, nil
}
