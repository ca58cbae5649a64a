package minimal_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/examples/connector/minimal"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// A source is small. When the sdk makes it larger, this says so.
func TestItIsMinimal(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("minimal.go")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "\nimport (\n")
	_, after, found := strings.Cut(rest, "\n)\n")
	if n := strings.Count(before+after, "\n"); !found || n > 60 {
		t.Errorf("minimal.go has %d lines without its imports, comments and empty ones included; 60 are enough", n)
	}
}

// system is the system in this process, as the suite wants to have it: it hangs and fails on demand.
type system struct {
	mu      sync.Mutex
	parts   [][]string
	resumed chan struct{} // closed when the system answers
	failing int
}

func newSystem(parts int) *system {
	s := &system{parts: make([][]string, parts), resumed: make(chan struct{})}
	close(s.resumed)
	return s
}

func (s *system) Append(part int, values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[part] = append(s.parts[part], values...)
}

func (s *system) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = make(chan struct{})
}

func (s *system) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.resumed:
	default:
		close(s.resumed)
	}
}

func (s *system) Close() {}

// Fail implements [conformance.Failer].
func (s *system) Fail(calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = calls
}

// Grow implements [conformance.Grower].
func (s *system) Grow(parts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, make([][]string, parts-len(s.parts))...)
}

// answer waits until the system answers, and then does so under the lock.
func (s *system) answer(ctx context.Context, with func()) error {
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	select {
	case <-resumed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing > 0 {
		s.failing--
		return errors.New("the system failed")
	}
	with()
	return nil
}

func (s *system) list(ctx context.Context, _ base.Round) (splits []minimal.Split, err error) {
	err = s.answer(ctx, func() {
		for i := range s.parts {
			splits = append(splits, minimal.Split{Part: strconv.Itoa(i)})
		}
	})
	return splits, err
}

// read makes a Read that ends a part where it has nothing more, or does not.
func (s *system) read(ends bool) func(context.Context, string, int64) ([]string, error) {
	return func(ctx context.Context, part string, from int64) (lines []string, err error) {
		number, err := strconv.Atoi(part)
		if err != nil {
			return nil, err
		}
		err = s.answer(ctx, func() {
			rest := s.parts[number][from:]
			lines = slices.Clone(rest[:min(len(rest), 20)])
		})
		if err == nil && ends && len(lines) == 0 {
			err = io.EOF
		}
		return lines, err
	}
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness[minimal.Split, *system]{
		Backend: newSystem,
		Source: func(s *system) sdk.Source[minimal.Split] {
			return &minimal.Source{List: s.list, Interval: time.Minute, Read: s.read(false)}
		},
		Bounded: func(s *system) sdk.Source[minimal.Split] {
			return &minimal.Source{List: s.list, Read: s.read(true)}
		},
	})
}
