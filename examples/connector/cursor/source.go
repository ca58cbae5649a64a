package cursor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Limits of the API.
const (
	MaxPageSize = 1000
	maxBody     = 32 << 20 // bytes of an answer
)

// Defaults of a [Source].
const (
	DefaultPageSize = 100
	DefaultPoll     = time.Second
	DefaultTimeout  = 30 * time.Second
	DefaultGiveUp   = 15 * time.Minute
)

// Source reads all streams of an API, each from its oldest event. It is used by pointer: what is made from it shares what the API said about
// limits.
type Source struct {
	// URL is the address of the API, without /v1. Required.
	URL string
	// Token is sent with each call. No text ever shows it.
	Token Token
	// HTTP makes the calls; nil means http.DefaultClient.
	HTTP *http.Client
	// Once reads each stream to where nothing follows and ends there. Streams that appear later are not read.
	Once bool
	// PageSize is how many events a call asks for, at most [MaxPageSize]; zero means [DefaultPageSize]. It may change between runs.
	PageSize int
	// Poll is how long a stream that has nothing more is left alone; zero means [DefaultPoll].
	Poll time.Duration
	// Timeout of one call; zero means [DefaultTimeout].
	Timeout time.Duration
	// GiveUp is how long the calls for one stream may fail before the reader does; zero means [DefaultGiveUp].
	GiveUp time.Duration

	pace pace
}

var (
	_ sdk.Source[Split] = (*Source)(nil)
	_ sdk.Prober        = (*Source)(nil)
	_ sdk.Describer     = Split{}
)

// Place is a position in a stream: the beginning of a page, and how much of it was emitted.
type Place struct {
	Cursor string `json:"cursor"` // of the page; empty is the beginning of the stream
	Done   int    `json:"done"`   // events of the page that were emitted
	Last   string `json:"last"`   // the id of the last of these; empty when nobody knows (version 1)
}

// Split is a stream and the place in it.
type Split struct {
	Stream string `json:"stream"`
	Place
}

// SplitID implements [sdk.Split].
func (s Split) SplitID() sdk.SplitID { return sdk.SplitID(s.Stream) }

// Describe implements [sdk.Describer].
func (s Split) Describe() []sdk.Attribute {
	return []sdk.Attribute{
		{Name: "stream", Value: s.Stream},
		{Name: "page", Value: cmp.Or(s.Cursor, "(first)")},
		{Name: "done", Value: strconv.Itoa(s.Done)},
		{Name: "last id", Value: cmp.Or(s.Last, "-")},
	}
}

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability {
	c := base.Capability("cursor", "1.1.0")
	c.Suite = 1 // of package conformance, passed
	return c
}

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return Codec{} }

// Validate names every field that cannot be used, without asking anybody.
func (s *Source) Validate() error {
	var errs []error
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("URL is %q: use the address of the API, such as https://api.example.com", s.URL))
	}
	if s.PageSize < 0 || s.PageSize > MaxPageSize {
		errs = append(errs, fmt.Errorf("PageSize is %d: use 1 to %d, or 0 for %d", s.PageSize, MaxPageSize, DefaultPageSize))
	}
	for _, option := range []struct {
		name  string
		value time.Duration
	}{{"Poll", s.Poll}, {"Timeout", s.Timeout}, {"GiveUp", s.GiveUp}} {
		if option.value < 0 {
			errs = append(errs, fmt.Errorf("%s is %s: use more than 0, or 0 for the default", option.name, option.value))
		}
	}
	return errors.Join(errs...)
}

// Probe implements [sdk.Prober].
func (s *Source) Probe(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	_, err := s.api(sdk.DiscardMetrics).streams(ctx)
	if answer, ok := errors.AsType[*APIError](err); ok && answer.Status == http.StatusTooManyRequests {
		return nil // it works, later
	}
	return err
}

// NewEnumerator implements [sdk.Source]. Whether a job ends is part of its identity: streams that one run has read to their end and another
// one reads for ever would not be read at all.
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	if err := s.Validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	api := s.api(ctx.Metrics())
	return base.NewEnumerator(ctx, state, base.EnumeratorConfig[Split]{
		Interval: time.Minute,
		Bounded:  s.Once,
		Identity: []sdk.Attribute{{Name: "once", Value: strconv.FormatBool(s.Once)}},
		Timeout:  maxRetryAfter + time.Minute, // the call waits for as long as the API wants to be left alone
		Discover: func(ctx context.Context, _ base.Round) ([]Split, error) {
			names, err := api.streams(ctx)
			splits := make([]Split, len(names))
			for i, name := range names {
				splits[i].Stream = name
			}
			return splits, err
		},
	})
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	return base.NewReader(ctx, base.Config[element, Split, Split]{
		Fetcher: func() (base.SplitReader[element, Split], error) {
			return &fetcher{
				api: s.api(ctx.Metrics()), log: ctx.Logger(), once: s.Once,
				poll: cmp.Or(s.Poll, DefaultPoll), giveUp: cmp.Or(s.GiveUp, DefaultGiveUp),
			}, nil
		},
		Emit: emit,
	})
}

// element is an event, and where its stream stands after it.
type element struct {
	Event
	after Place
}

// emit runs on the reader's loop: the record and the position that covers it change together.
func emit(e element, at *Split, out sdk.Output) error {
	if out.Emit(sdk.Record{Key: []byte(e.ID), Value: []byte(e.Body), Time: e.At, Topic: at.Stream, Partition: -1, Epoch: -1, Sequence: e.ID}) {
		at.Place = e.after
	}
	return nil
}

// api is how the API is spoken to; the pace is that of the source.
func (s *Source) api(m sdk.Metrics) *api {
	return &api{
		url: s.URL, token: s.Token, http: cmp.Or(s.HTTP, http.DefaultClient), pace: &s.pace,
		pageSize: cmp.Or(s.PageSize, DefaultPageSize), timeout: cmp.Or(s.Timeout, DefaultTimeout),
		calls:     m.Counter("calls", "{call}", "Calls of the API."),
		throttled: m.Counter("calls_throttled", "{call}", "Calls that the API answered with 429."),
		failed:    m.Counter("calls_failed", "{call}", "Calls that failed for another reason, those that were tried again included."),
	}
}
