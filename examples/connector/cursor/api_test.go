package cursor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

func TestNoTextShowsTheToken(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const hush = "hush-hush"
		s := w.source
		s.Token = hush
		var texts []string
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			texts = append(texts, fmt.Sprintf(format, s), fmt.Sprintf(format, s.Token), fmt.Sprintf(format, &struct{ T Token }{hush}))
		}
		var log bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(h).Info("token", "token", s.Token, "in", struct{ Token Token }{hush})
		}
		encoded, err := json.Marshal(map[string]any{"a": s.Token, "b": struct{ Token Token }{hush}})
		if err != nil {
			t.Fatal(err)
		}
		// This server repeats what it was sent.
		probe := s.Probe(t.Context())
		if !errors.Is(probe, ErrToken) {
			t.Fatalf("a wrong token was answered with %v", probe)
		}
		w.fails(w.fetcher(Split{Stream: "a"}), ErrToken, "set Token")
		_, fetched := w.fetch(w.fetcher(Split{Stream: "a"}))
		for _, text := range append(texts, log.String(), string(encoded), probe.Error(), fetched.Error()) {
			if strings.Contains(text, hush) || !strings.Contains(text, Redacted) {
				t.Errorf("the token is shown, or nothing stands for it: %s", text)
			}
		}
	})
}

// Names come in pages too.
func TestEveryStreamIsFound(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const many = 3*namesPerPage + 1
		for i := range many {
			w.server.Add(strconv.Itoa(i))
		}
		names, err := w.source.api(sdk.DiscardMetrics).streams(t.Context())
		if err != nil || len(names) != many {
			t.Errorf("%d streams of %d, error %v", len(names), many, err)
		}
	})
}

func TestWhatCannotWorkIsSaidAtTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		for want, s := range map[string]*Source{
			`URL is ""`:              {},
			`URL is "api"`:           {URL: "api"},
			"PageSize is 1001":       {URL: "http://a", PageSize: 1001},
			"Poll is -1s":            {URL: "http://a", Poll: -time.Second},
			"invalid_token":          {URL: w.source.URL, HTTP: w.source.HTTP},
			`GiveUp is -1ns: use mo`: {URL: "http://a", GiveUp: -1},
		} {
			if err := s.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		for range 2 {
			if err := w.source.Probe(t.Context()); err != nil {
				t.Errorf("a source that works: %v", err)
			}
			w.server.Refuse(1, http.StatusTooManyRequests, "1")
		}
	})
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "17": 17 * time.Second, "-3": 0, "soon": 0, "1.5": 0,
		"9223372036854775807":                             maxRetryAfter,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.AddDate(9, 0, 0).Format(http.TimeFormat):      maxRetryAfter,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q is %s, want %s", header, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Add("17")
	f.Add("Fri, 02 Jan 2026 03:05:00 GMT")
	f.Fuzz(func(t *testing.T, header string) {
		if d := retryAfter(header, now); d < 0 || d > maxRetryAfter {
			t.Errorf("%q is %s", header, d)
		}
	})
}

// Whatever the answer, a page is taken or refused, and what was read before is never answered again.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"events":[{"id":"1","at":"2026-01-02T03:04:05Z","body":"x"}],"next":"c","more":true}`), 0, "")
	f.Add([]byte(`{"events":[{"id":"1"},{"id":"2"}],"next":"c"}`), 1, "1")
	f.Fuzz(func(t *testing.T, answer []byte, done int, last string) {
		at := Place{Cursor: "b", Done: done, Last: last}
		if (Split{"a", at}).check() != nil {
			return
		}
		var p page
		if json.Unmarshal(answer, &p) != nil {
			return
		}
		s := &stream{name: "a", at: at}
		elements, err := s.take(p)
		if err == nil && len(elements) > max(0, len(p.Events)-done) {
			t.Errorf("%d events of %d, of which %d were done", len(elements), len(p.Events), done)
		}
		if err != nil && s.at != at {
			t.Errorf("after %v the place is %+v", err, s.at)
		}
	})
}

func TestAnswersThatMakeNoSenseAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON":            `<html>`,
		"no next cursor":     `{"events":[],"more":false}`,
		"the same cursor":    `{"events":[{"id":"1"}],"next":"here","more":true}`,
		"a list without end": `{"streams":["a"],"next":"here","more":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.source.HTTP = &http.Client{Transport: always(answer)}
				if answer[2] == 's' {
					if _, err := w.source.api(sdk.DiscardMetrics).streams(t.Context()); !errors.Is(err, ErrAnswer) {
						t.Errorf("error %v", err)
					}
					return
				}
				w.fails(w.fetcher(Split{"a", Place{Cursor: "here"}}), ErrAnswer, `stream "a" at cursor "here"`)
			})
		})
	}
}

// always answers with this text.
type always string

func (a always) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

var _ base.SplitReader[element, Split] = (*fetcher)(nil)
