package fake_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/sdk"
)

// system decides which of the records that the source would make up exist already. They hold what the source makes up and not what
// was appended, so it keeps the values beside.
type system struct {
	mu      sync.Mutex
	values  [][]string
	changed chan struct{} // closed and replaced by every change
	stalled bool
	failing int
}

func newSystem(splits int) *system {
	return &system{values: make([][]string, splits), changed: make(chan struct{})}
}

func (s *system) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *system) Append(split int, values ...string) {
	s.change(func() {
		for _, v := range values {
			s.values[split] = append(s.values[split], strings.Clone(v))
		}
	})
}

func (s *system) Stall()         { s.change(func() { s.stalled = true }) }
func (s *system) Resume()        { s.change(func() { s.stalled = false }) }
func (s *system) Fail(calls int) { s.change(func() { s.failing = calls }) }
func (s *system) Close()         {}

// look answers whether a fetch may go on, and else what to wait for.
func (s *system) look(split int, next int64) (fail bool, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stalled:
		return false, s.changed
	case s.failing > 0:
		s.failing--
		return true, nil
	case next >= int64(len(s.values[split])):
		return false, s.changed
	default:
		return false, nil
	}
}

// before holds a fetch until its record exists.
func (s *system) before(ctx context.Context, split int, next int64) error {
	for {
		fail, wait := s.look(split, next)
		if fail {
			return fake.ErrFault
		}
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *system) text(rec *sdk.Record) (string, bool) {
	split, i, err := fake.ParseValue(rec.Value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || split >= len(s.values) || i >= int64(len(s.values[split])) {
		return string(rec.Value), true // which the suite will not know
	}
	return s.values[split][i], true
}

// source makes a source of these records. A fetcher for each split, because a fetch that waits for one waits for all of its fetcher's.
func (s *system) source(cfg fake.Config) sdk.Source[fake.Split] {
	cfg.Splits, cfg.Fetchers, cfg.ChunkSize, cfg.RecordSize = len(s.values), len(s.values), 1, 10
	source, err := fake.New(cfg)
	if err != nil {
		panic(err)
	}
	source.Hooks.BeforeFetch = func(ctx context.Context, split int, next int64) error {
		if cfg.RecordsPerSplit > 0 && next >= cfg.RecordsPerSplit {
			return nil // there is nothing to wait for
		}
		return s.before(ctx, split, next)
	}
	return source
}

func TestConformance(t *testing.T) {
	for name, cfg := range map[string]fake.Config{"views": {}, "copies": {Copied: true}, "durable": {Durable: true}} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, conformance.Harness[fake.Split, *system]{
				Backend: newSystem,
				Source:  func(s *system) sdk.Source[fake.Split] { return s.source(cfg) },
				Bounded: func(s *system) sdk.Source[fake.Split] {
					ending := cfg
					ending.RecordsPerSplit = int64(len(s.values[0])) // the suite fills all parts alike
					return s.source(ending)
				},
				Text:   (*system).text,
				Golden: "../../testdata/splits/fake-v%d.bin",
			})
		})
	}
}
