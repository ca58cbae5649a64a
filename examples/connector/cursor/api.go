package cursor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

var (
	// ErrExpired says that the API does not keep any more what a cursor names.
	ErrExpired = errors.New("cursor: the cursor has expired")
	// ErrToken says that the API does not take the token.
	ErrToken = errors.New("cursor: the token is not valid")
	// ErrMissing says that a stream is not there.
	ErrMissing = errors.New("cursor: no such stream")
	// ErrAnswer says that an answer is not one of the API.
	ErrAnswer = errors.New("cursor: the answer makes no sense")
)

// APIError is what the API said instead of an answer. It unwraps to one of the sentinels of this package, if there is one for it.
type APIError struct {
	Call    string // as in "GET /v1/streams"
	Status  int
	Code    string // the API's own word for it
	Message string // the API's own sentence
	// RetryAfter is how long the API wants to be left alone; zero when it did not say.
	RetryAfter time.Duration
}

func (e *APIError) Error() string {
	text := fmt.Sprintf("%s: %d %s", e.Call, e.Status, cmp.Or(e.Code, http.StatusText(e.Status)))
	if e.Message != "" {
		text += fmt.Sprintf(" (%s)", e.Message)
	}
	return text
}

// Unwrap returns the sentinel.
func (e *APIError) Unwrap() error {
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return ErrToken
	case e.Status == http.StatusNotFound:
		return ErrMissing
	case e.Status == http.StatusGone && e.Code == "cursor_expired":
		return ErrExpired
	default:
		return nil
	}
}

// passes reports whether the same call may work later. What is no answer of the API at all, such as a broken connection, may.
func passes(err error) bool {
	if answer, ok := errors.AsType[*APIError](err); ok {
		return answer.Status >= 500 || answer.Status == http.StatusTooManyRequests
	}
	return !errors.Is(err, ErrAnswer)
}

// Event is one event of a stream.
type Event struct {
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	Body string    `json:"body"`
}

// page is a page of events.
type page struct {
	Events []Event `json:"events"`
	Next   string  `json:"next"` // the cursor of what follows, always
	More   bool    `json:"more"` // something follows by now
}

// listing is a page of stream names.
type listing struct {
	Streams []string `json:"streams"`
	Next    string   `json:"next"`
	More    bool     `json:"more"`
}

// maxListings bounds how many pages of names are asked for.
const maxListings = 10_000

// api speaks to the API. Safe for concurrent use.
type api struct {
	url                      string
	token                    Token
	http                     *http.Client
	pace                     *pace
	pageSize                 int
	timeout                  time.Duration
	calls, throttled, failed sdk.Counter
}

// streams lists all streams. A listing has pages too: who forgets the second one loses streams in silence.
func (a *api) streams(ctx context.Context) (names []string, err error) {
	at := ""
	for range maxListings {
		var l listing
		if err := a.get(ctx, "/v1/streams", url.Values{"cursor": {at}}, &l); err != nil {
			return nil, err
		}
		names = append(names, l.Streams...)
		if !l.More {
			return names, nil
		}
		if l.Next == "" || l.Next == at {
			return nil, fmt.Errorf("%w: more streams are said to follow, behind the same cursor %q", ErrAnswer, at)
		}
		at = l.Next
	}
	return nil, fmt.Errorf("%w: the list of streams has more than %d pages", ErrAnswer, maxListings)
}

// events asks for the page at a cursor.
func (a *api) events(ctx context.Context, stream, cursor string) (p page, err error) {
	err = a.get(ctx, "/v1/streams/"+url.PathEscape(stream)+"/events",
		url.Values{"cursor": {cursor}, "limit": {strconv.Itoa(a.pageSize)}}, &p)
	if err == nil && (p.Next == "" || p.Next == cursor && len(p.Events) > 0) {
		err = fmt.Errorf("%w: the page at cursor %q of stream %q has %d events and the next cursor %q", ErrAnswer, cursor, stream, len(p.Events), p.Next)
	}
	return p, err
}

// get makes one call when the pace allows it, and tells the pace what it hears. It does not call again: Fetch and the enumerator decide that.
func (a *api) get(ctx context.Context, path string, query url.Values, into any) error {
	if err := a.pace.wait(ctx); err != nil {
		return err
	}
	a.calls.Add(1)
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	err := a.call(ctx, path, query, into)
	if answer, ok := errors.AsType[*APIError](err); ok && answer.Status == http.StatusTooManyRequests {
		a.throttled.Add(1)
		a.pace.slow(time.Now().Add(cmp.Or(answer.RetryAfter, defaultRetryAfter)))
	} else if err != nil {
		a.failed.Add(1)
	}
	return err
}

func (a *api) call(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+string(a.token))
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("GET %s: %w", path, err)
	case resp.StatusCode != http.StatusOK:
		return a.refusal(path, resp, body)
	case len(body) > maxBody:
		return fmt.Errorf("%w: GET %s: more than %d bytes: use a smaller PageSize", ErrAnswer, path, maxBody)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: GET %s: %w", ErrAnswer, path, err)
	}
	return nil
}

// refusal makes an error of what the API said. Somebody's server may repeat the token that it was sent; here it ends.
func (a *api) refusal(path string, resp *http.Response, body []byte) error {
	var said struct {
		Error struct{ Code, Message string }
	}
	_ = json.Unmarshal(body, &said) // a proxy on the way answers with anything
	clean := func(text string) string {
		if a.token != "" {
			text = strings.ReplaceAll(text, string(a.token), Redacted)
		}
		return text[:min(len(text), 300)]
	}
	return &APIError{
		Call: "GET " + path, Status: resp.StatusCode, Code: clean(said.Error.Code), Message: clean(said.Error.Message),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
}
