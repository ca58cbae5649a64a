package cursor

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// namesPerPage is how many streams a page of the listing has.
const namesPerPage = 5

// Server is a server of the API, in memory: it throttles, fails and forgets when it is told to. Its methods may be called from any goroutine.
type Server struct {
	token string

	mu      sync.Mutex
	names   []string // in the order in which they were made
	streams map[string]*kept
	trouble []trouble
	calls   []time.Time
}

// kept is what is left of a stream.
type kept struct {
	made      int // so many events there ever were
	forgotten int // so many of the oldest are not kept any more
	events    []Event
}

// trouble is how one of the next calls is answered.
type trouble struct {
	status     int
	retryAfter string
}

// NewServer returns a server that takes this token, with empty streams of these names.
func NewServer(token string, streams ...string) *Server {
	s := &Server{token: token, streams: map[string]*kept{}}
	for _, name := range streams {
		s.Add(name)
	}
	return s
}

// Add appends events to a stream, which is made when it is not there.
func (s *Server) Add(stream string, bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.streams[stream]
	if k == nil {
		k = &kept{}
		s.streams[stream] = k
		s.names = append(s.names, stream)
	}
	for _, body := range bodies {
		k.made++
		k.events = append(k.events, Event{ID: strconv.Itoa(k.made), At: time.Now(), Body: body})
	}
}

// Forget removes the oldest events of a stream. Cursors that name them expire.
func (s *Server) Forget(stream string, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.streams[stream]
	k.events = slices.Delete(k.events, 0, events)
	k.forgotten += events
}

// Remove removes one event out of the middle, as a server that keeps its promises never does.
func (s *Server) Remove(stream, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.streams[stream]
	k.events = slices.DeleteFunc(k.events, func(e Event) bool { return e.ID == id })
}

// Refuse answers so many of the next calls with a status, and with a header Retry-After unless that is empty.
func (s *Server) Refuse(calls, status int, retryAfter string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = append(s.trouble, slices.Repeat([]trouble{{status, retryAfter}}, calls)...)
}

// Calls lists when the server was called.
func (s *Server) Calls() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// refusal is an answer that is none.
type refusal struct {
	status        int
	code, message string
	retryAfter    string
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, no := s.answer(r)
	if no != nil {
		if no.retryAfter != "" {
			w.Header().Set("Retry-After", no.retryAfter)
		}
		w.WriteHeader(no.status)
		answer = map[string]any{"error": map[string]string{"code": no.code, "message": no.message}}
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

func (s *Server) answer(r *http.Request) (any, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, time.Now())
	if len(s.trouble) > 0 {
		t := s.trouble[0]
		s.trouble = s.trouble[1:]
		return nil, &refusal{t.status, strings.ToLower(strings.ReplaceAll(http.StatusText(t.status), " ", "_")), "as it was told to", t.retryAfter}
	}
	if given := r.Header.Get("Authorization"); given != "Bearer "+s.token {
		return nil, &refusal{status: http.StatusUnauthorized, code: "invalid_token", message: fmt.Sprintf("%q is no token", given)}
	}
	if r.URL.Path == "/v1/streams" {
		return s.listing(r)
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/v1/streams/")
	name, isEvents := strings.CutSuffix(name, "/events")
	k := s.streams[name]
	if !ok || !isEvents || k == nil {
		return nil, &refusal{status: http.StatusNotFound, code: "not_found", message: "there is no such stream"}
	}
	return k.page(name, r)
}

func (s *Server) listing(r *http.Request) (any, *refusal) {
	from, no := place("streams", r.FormValue("cursor"), 0, len(s.names))
	if no != nil {
		return nil, no
	}
	to := min(from+namesPerPage, len(s.names))
	return listing{Streams: s.names[from:to], Next: cursorOf("streams", to), More: to < len(s.names)}, nil
}

func (k *kept) page(stream string, r *http.Request) (any, *refusal) {
	limit, err := strconv.Atoi(cmp.Or(r.FormValue("limit"), strconv.Itoa(DefaultPageSize)))
	if err != nil || limit < 1 || limit > MaxPageSize {
		return nil, &refusal{status: http.StatusBadRequest, code: "bad_limit", message: fmt.Sprintf("limit is 1 to %d", MaxPageSize)}
	}
	end := k.forgotten + len(k.events)
	from, no := place(stream, r.FormValue("cursor"), k.forgotten, end)
	if no != nil {
		return nil, no
	}
	to := min(from+limit, end)
	return page{Events: slices.Clone(k.events[from-k.forgotten : to-k.forgotten]), Next: cursorOf(stream, to), More: to < end}, nil
}

// cursorOf makes a cursor. Nobody else is to know what is in it.
func cursorOf(what string, at int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(what + ":" + strconv.Itoa(at)))
}

// place reads a cursor; none is the first that is kept.
func place(what, cursor string, first, end int) (int, *refusal) {
	if cursor == "" {
		return first, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	number, ours := strings.CutPrefix(string(text), what+":")
	at, err2 := strconv.Atoi(number)
	switch {
	case err != nil || err2 != nil || !ours || at > end:
		return 0, &refusal{status: http.StatusBadRequest, code: "bad_cursor", message: "this cursor is not one of ours"}
	case at < first:
		return 0, &refusal{status: http.StatusGone, code: "cursor_expired", message: fmt.Sprintf("%d events after this cursor are not kept any more", first-at)}
	}
	return at, nil
}
