package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
)

// ingest runs a whole bounded job.
func ingest(ctx context.Context, dir string) error {
	source, err := fake.New(fake.Config{Splits: 3, RecordsPerSplit: 1000})
	if err != nil {
		return err
	}
	return engine.Run(ctx, engine.Job{
		Name:        "numbers",
		Parallelism: 2,
		Source:      engine.From(source),
		Sink:        file.Sink{Path: filepath.Join(dir, "out")},
		Checkpoint:  engine.Checkpoint{Dir: filepath.Join(dir, "state"), Interval: time.Second},
	})
}

func Example_run() {
	dir, err := os.MkdirTemp("", "penstock-docs-*")
	if err != nil {
		report(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 { // the second run finds that the job has finished
		if err := ingest(context.Background(), dir); err != nil {
			report(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "out", "numbers-*.jsonl"))
	records := 0
	for _, f := range files {
		lines, err := os.ReadFile(f)
		if err != nil {
			report(err)
		}
		records += bytes.Count(lines, []byte("\n"))
	}
	report(records, "records") // in how many files depends on when the readers began
	// Output: 3000 records
}

// steer starts an endless job, takes a savepoint, and stops it.
func steer(ctx context.Context, job engine.Job) error {
	handle, err := engine.Start(ctx, job)
	if err != nil {
		return err // the job is wrong, the state does not fit, or the source cannot be reached
	}
	id, err := handle.Savepoint(ctx) // a checkpoint that is kept; the job goes on
	if err != nil {
		handle.Cancel() // ends it without another checkpoint
		return err
	}
	report("savepoint", id > 0)
	handle.Stop() // another savepoint, behind which nothing is read; returns at once
	result, err := handle.Wait(ctx)
	if err != nil {
		return err // the job failed
	}
	report("stopped", result.Outcome == engine.Stopped, result.Checkpoint > id)
	return nil
}

func report(args ...any) { fmt.Println(args...) }

func Example_steer() {
	source, err := fake.New(fake.Config{})
	if err != nil {
		report(err)
		return
	}
	err = steer(context.Background(), engine.Job{Name: "endless", Source: engine.From(source), Sink: blackhole.New(blackhole.Order)})
	if err != nil {
		report(err)
	}
	// Output:
	// savepoint true
	// stopped true true
}

// watched adds what a program wants to see of a job.
func watched(job engine.Job, mux *http.ServeMux, log *zap.Logger) (engine.Job, error) {
	job.Logger = log
	job.Metrics = telemetry.NewRegistry(job.Name, telemetry.Options{})
	page, err := telemetry.Handler(job.Metrics) // several jobs of a program share a page
	if err != nil {
		return job, err
	}
	mux.Handle("GET /metrics", page)
	job.Listener = engine.Listener{
		CheckpointDone: func(m *protocol.Manifest, took time.Duration) {
			log.Info("committed", zap.Int64("checkpoint", int64(m.ID)), zap.Int64("records", m.Records), zap.Duration("took", took))
		},
		Restarting: func(what string, err error, after time.Duration) {
			log.Warn("restarting", zap.String("what", what), zap.Duration("after", after), zap.Error(err))
		},
	}
	return job, nil
}

func Example_watched() {
	source, err := fake.New(fake.Config{RecordsPerSplit: 100})
	if err != nil {
		report(err)
		return
	}
	job, err := watched(engine.Job{Name: "seen", Source: engine.From(source), Sink: blackhole.New(blackhole.Order)}, http.NewServeMux(), zap.NewNop())
	if err != nil {
		report(err)
		return
	}
	options := engine.DefaultOptions()
	options.PollRecords = 32
	options.RestartLimit = 3
	job.Options = &options
	report(engine.Run(context.Background(), job), job.Metrics.Snapshot().Written)
	// Output: <nil> 100
}
