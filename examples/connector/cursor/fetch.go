package cursor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// fetcher reads the streams of one reader, whichever is due first. It runs on a goroutine of its own, so that it may wait, and nothing of it is
// seen by anybody else.
type fetcher struct {
	api          *api
	log          *slog.Logger
	once         bool
	poll, giveUp time.Duration
	streams      []*stream // who was asked last stands last
}

// stream is a split on this side: how far it was fetched, and when it is asked again. The time is kept here and not in Fetch, which
// may be cancelled at any moment: the next one goes on waiting for the same time.
type stream struct {
	name     string
	at       Place
	paused   bool
	due      time.Time // it is not asked before
	failures int       // in a row
	failing  time.Time // since
}

func (s *stream) id() sdk.SplitID { return sdk.SplitID(s.name) }

// HandleSplits implements [base.SplitReader].
func (f *fetcher) HandleSplits(c base.Change[Split]) error {
	for _, split := range c.Added {
		f.streams = append(f.streams, &stream{name: split.Stream, at: split.Place})
	}
	for _, s := range f.streams {
		s.paused = !slices.Contains(c.Resumed, s.id()) && (s.paused || slices.Contains(c.Paused, s.id()))
	}
	return nil
}

// Close implements [base.SplitReader].
func (f *fetcher) Close() error { return nil }

// Fetch implements [base.SplitReader]: it asks for the next page of the stream that is due first.
func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[element], error) {
	s := f.next()
	if err := waitUntil(ctx, s.due); err != nil {
		return base.Fetched[element]{}, err
	}
	p, err := f.api.events(ctx, s.name, s.at.Cursor)
	switch {
	case ctx.Err() != nil: // nothing was taken, so that the same page is asked for again
		return base.Fetched[element]{}, context.Cause(ctx)
	case err != nil:
		return base.Fetched[element]{}, f.failed(s, err)
	}
	elements, err := s.take(p)
	if err != nil {
		return base.Fetched[element]{}, err
	}
	s.failures, s.due = 0, time.Now()
	var got base.Fetched[element]
	if len(elements) > 0 {
		got.Chunks = []base.Chunk[element]{{Split: s.id(), Elements: elements, Bytes: size(elements)}}
	}
	switch {
	case p.More:
	case f.once:
		got.Finished = []sdk.SplitID{s.id()}
		f.streams = f.streams[:len(f.streams)-1]
	default:
		s.due = s.due.Add(f.poll)
	}
	return got, nil
}

// next puts the stream that is due first last, and answers it. There is one that is not paused, or Fetch would not have been called.
func (f *fetcher) next() *stream {
	first := -1
	for i, s := range f.streams {
		if !s.paused && (first < 0 || s.due.Before(f.streams[first].due)) {
			first = i
		}
	}
	s := f.streams[first]
	f.streams = append(slices.Delete(f.streams, first, first+1), s)
	return s
}

// take moves the place past a page and answers its events that were not emitted yet, each with the place after it.
func (s *stream) take(p page) ([]element, error) {
	done := min(s.at.Done, len(p.Events))
	switch {
	case done < s.at.Done && !p.More:
		return nil, s.changed(fmt.Sprintf("it has %d events, and %d of them were read", len(p.Events), s.at.Done))
	case done == s.at.Done && s.at.Last != "" && p.Events[done-1].ID != s.at.Last:
		return nil, s.changed(fmt.Sprintf("event %d of it was %q when it was read, and is %q", done, s.at.Last, p.Events[done-1].ID))
	}
	elements := make([]element, 0, len(p.Events)-done)
	for i, e := range p.Events[done:] {
		after := Place{Cursor: s.at.Cursor, Done: done + i + 1, Last: e.ID}
		if after.Done == len(p.Events) {
			after = Place{Cursor: p.Next}
		}
		elements = append(elements, element{e, after})
	}
	// With a smaller PageSize than in the run before, what was read may reach into the next page.
	rest := Place{Cursor: p.Next, Done: s.at.Done - done}
	if rest.Done > 0 {
		rest.Last = s.at.Last
	}
	s.at = rest
	return elements, nil
}

func (s *stream) changed(how string) error {
	return sdk.Fatalf("%w: stream %q: the page at cursor %q has changed since the last run: %s. %s", ErrAnswer, s.name, s.at.Cursor, how, anew)
}

// anew is what to do when a position is of no use any more.
const anew = "To begin again with the oldest event that is kept, give the job an empty state directory and its sink another place"

// failed answers nil for what passes: the stream is asked again, later. Else it answers the error that ends the reader.
func (f *fetcher) failed(s *stream, err error) error {
	now := time.Now()
	answer, _ := errors.AsType[*APIError](err)
	switch {
	case errors.Is(err, ErrExpired):
		return sdk.Fatalf("stream %q: the events behind cursor %q are not kept any more, some may never have been read: %w. %s, "+
			"and run the job more often than events are forgotten", s.name, s.at.Cursor, err, anew)
	case errors.Is(err, ErrToken):
		return sdk.Fatalf("stream %q: %w: set Token to one that may read it", s.name, err)
	case !passes(err):
		return sdk.Fatalf("stream %q at cursor %q: %w", s.name, s.at.Cursor, err)
	case answer != nil && answer.Status == http.StatusTooManyRequests: // it works; the pace keeps everybody from asking
		f.log.Info("the API asks to be left alone", "for", cmp.Or(answer.RetryAfter, defaultRetryAfter))
		return nil
	}
	if s.failures++; s.failures == 1 {
		s.failing = now
	}
	if failing := now.Sub(s.failing); failing >= f.giveUp {
		return fmt.Errorf("stream %q: %d calls in a row have failed, for %s: %w", s.name, s.failures, failing.Round(time.Second), err)
	}
	pause := backOff(s.failures)
	if answer != nil {
		pause = max(pause, answer.RetryAfter)
	}
	s.due = now.Add(pause)
	f.log.Warn("a call failed and is made again", "stream", s.name, "after", pause, "failures", s.failures, "error", err)
	return nil
}

// size bounds how much is fetched ahead.
func size(elements []element) (n int64) {
	for _, e := range elements {
		n += int64(len(e.ID) + len(e.Body))
	}
	return n
}
