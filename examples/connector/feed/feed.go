// Package feed is a whole connector: it reads append-only feeds over HTTP. GET /feeds lists their names, one a line, and
// GET /feed/NAME?after=SEQ answers the items behind a sequence number as JSON, waiting a moment when there are none.
//
// The author thinks about feeds. Nothing here is about threads, locks or checkpoints.
package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Split is one feed and the sequence number of the last emitted item.
type Split struct {
	Name  string
	After int64
}

// SplitID implements [sdk.Split].
func (s Split) SplitID() sdk.SplitID { return sdk.SplitID(s.Name) }

// Item is an element of a feed.
type Item struct {
	Seq       int64     `json:"seq"`
	Published time.Time `json:"published"`
	Body      string    `json:"body"`
}

// Source reads all feeds of a server. Once reads each to where it has nothing more, and ends.
type Source struct {
	URL  string
	HTTP *http.Client
	Once bool
}

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability {
	c := base.Capability("feed", "1.0.0")
	c.Suite = 1 // of package conformance, passed
	return c
}

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return sdk.JSONCodec[Split]{Current: 1} }

// NewEnumerator implements [sdk.Source]: feeds that appear later are found within a minute and read from their start.
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	return base.NewEnumerator(ctx, state, base.EnumeratorConfig[Split]{
		Discover: s.discover,
		Interval: time.Minute,
		Bounded:  s.Once,
		Identity: []sdk.Attribute{{Name: "once", Value: strconv.FormatBool(s.Once)}},
	})
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	return base.NewReader(ctx, base.Config[Item, Split, Split]{
		Fetcher: func() (base.SplitReader[Item, Split], error) { return &fetcher{source: s}, nil },
		Emit:    emit,
	})
}

func (s *Source) discover(ctx context.Context, _ base.Round) ([]Split, error) {
	var splits []Split
	err := s.get(ctx, "/feeds", func(body *bufio.Reader) error {
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			splits = append(splits, Split{Name: strings.TrimSpace(lines.Text())})
		}
		return lines.Err()
	})
	return splits, err
}

// emit runs on the reader's loop: the record and the position that covers it change together.
func emit(it Item, at *Split, out sdk.Output) error {
	if out.Emit(sdk.Record{Value: []byte(it.Body), Time: it.Published, Topic: at.Name, Epoch: -1, Offset: it.Seq}) {
		at.After = it.Seq
	}
	return nil
}

// get asks the server and hands the body of a good answer to read.
func (s *Source) get(ctx context.Context, path string, read func(*bufio.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return err
	}
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return read(bufio.NewReader(resp.Body))
}

// fetcher reads the feeds of one reader, each in turn. It runs on a goroutine of its own.
type fetcher struct {
	base.Rota[Split] // whose turn it is, and how far each feed was fetched
	source           *Source
}

// Fetch implements [base.SplitReader]. It may wait: the engine cancels ctx when it has something else to do.
func (f *fetcher) Fetch(ctx context.Context) (base.Fetched[Item], error) {
	at := f.Next()
	var items []Item
	err := f.source.get(ctx, fmt.Sprintf("/feed/%s?after=%d", url.PathEscape(at.Name), at.After), func(body *bufio.Reader) error {
		return json.NewDecoder(body).Decode(&items)
	})
	switch {
	case ctx.Err() != nil: // nothing was taken, so that the next Fetch asks for the same
		return base.Fetched[Item]{}, context.Cause(ctx)
	case err != nil:
		return base.Fetched[Item]{}, err
	case len(items) > 0:
		at.After = items[len(items)-1].Seq
		return base.Fetched[Item]{Chunks: []base.Chunk[Item]{{Split: at.SplitID(), Elements: items}}}, nil
	case f.source.Once:
		f.Finish(at.SplitID())
		return base.Fetched[Item]{Finished: []sdk.SplitID{at.SplitID()}}, nil
	}
	return base.Fetched[Item]{}, nil
}
