package cursor

import (
	"cmp"
	"errors"
	"net/http/httptest"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// TestContract asks for what the source relies on: of the double always, and of a real server when the environment names one. It only reads, so
// that it may be run against a server that others use. What it does not ask for, nobody may build upon.
func TestContract(t *testing.T) {
	t.Run("double", func(t *testing.T) {
		server := NewServer("secret")
		for i := range 12 {
			server.Add("a", strconv.Itoa(i))
		}
		web := httptest.NewServer(server)
		defer web.Close()
		contract(t, &Source{URL: web.URL, Token: "secret"}, "a")
	})
	t.Run("real", func(t *testing.T) {
		url := os.Getenv("PENSTOCK_TEST_CURSOR_URL")
		if url == "" {
			t.Skip("PENSTOCK_TEST_CURSOR_URL is not set (and _TOKEN, and _STREAM: one with ten events or more)")
		}
		contract(t, &Source{URL: url, Token: Token(os.Getenv("PENSTOCK_TEST_CURSOR_TOKEN"))}, os.Getenv("PENSTOCK_TEST_CURSOR_STREAM"))
	})
}

// contract reads ten events of a stream in several ways.
func contract(t *testing.T, s *Source, stream string) {
	pages := func(t *testing.T, size int) (events []Event, cursors []string) {
		s.PageSize = size
		for at := ""; len(events) < 10; {
			p, err := s.api(sdk.DiscardMetrics).events(t.Context(), stream, at)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Events) == 0 && !p.More {
				t.Fatalf("the stream has only %d events, the test needs ten", len(events))
			}
			events, cursors = append(events, p.Events...), append(cursors, at)
			at = p.Next
		}
		return events[:10], cursors
	}
	all, _ := pages(t, 10)
	t.Run("pages of any size join without a gap", func(t *testing.T) {
		for size := 1; size < 10; size++ {
			if got, _ := pages(t, size); !reflect.DeepEqual(got, all) {
				t.Errorf("in pages of %d the events are %v, at once %v", size, got, all)
			}
		}
	})
	t.Run("a cursor is good more than once", func(t *testing.T) {
		_, cursors := pages(t, 3)
		for range 2 {
			p, err := s.api(sdk.DiscardMetrics).events(t.Context(), stream, cursors[1])
			if err != nil || !reflect.DeepEqual(p.Events, all[3:6]) {
				t.Errorf("the second page is %v, error %v, want %v", p.Events, err, all[3:6])
			}
		}
	})
	t.Run("ids are unique", func(t *testing.T) {
		seen := map[string]bool{}
		for _, e := range all {
			if e.ID == "" || seen[e.ID] {
				t.Errorf("two events have the id %q", e.ID)
			}
			seen[e.ID] = true
		}
	})
	t.Run("errors have their status", func(t *testing.T) {
		stranger := &Source{URL: s.URL, Token: "nobody's"}
		if _, err := stranger.api(sdk.DiscardMetrics).events(t.Context(), stream, ""); !errors.Is(err, ErrToken) {
			t.Errorf("a wrong token: %v", err)
		}
		if _, err := s.api(sdk.DiscardMetrics).events(t.Context(), stream+"-that-is-not-there", ""); !errors.Is(err, ErrMissing) {
			t.Errorf("a stream that is not there: %v", err)
		}
		_, err := s.api(sdk.DiscardMetrics).events(t.Context(), stream, "no cursor")
		if answer, ok := errors.AsType[*APIError](err); !ok || answer.Status < 400 || answer.Status > 499 {
			t.Errorf("a cursor that is none: %v", cmp.Or(err, errors.New("no error")))
		}
	})
}
