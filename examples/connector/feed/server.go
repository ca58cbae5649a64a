package feed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Server is a small feed server, for the example and its test.
type Server struct {
	mu    sync.Mutex
	feeds map[string][]Item
	names []string
	grown chan struct{} // closed and replaced when an item is added
}

// NewServer returns a server with empty feeds of the given names.
func NewServer(names ...string) *Server {
	s := &Server{feeds: map[string][]Item{}, grown: make(chan struct{})}
	for _, n := range names {
		s.Add(n)
	}
	return s
}

// Add appends items to a feed, which is made when it is not there.
func (s *Server) Add(name string, bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feeds[name] == nil {
		s.feeds[name] = []Item{}
		s.names = append(s.names, name)
	}
	for _, body := range bodies {
		seq := int64(len(s.feeds[name]) + 1)
		s.feeds[name] = append(s.feeds[name], Item{Seq: seq, Published: time.Now(), Body: body})
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

func (s *Server) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

func (s *Server) after(name string, seq int64) (items []Item, grown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.feeds[name]
	from := min(max(seq, 0), int64(len(all)))
	to := min(from+maxItems, int64(len(all)))
	return append([]Item{}, all[from:to]...), s.grown
}

const (
	maxItems = 100
	maxWait  = 100 * time.Millisecond
)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/feeds" {
		for _, n := range s.list() {
			fmt.Fprintln(w, n)
		}
		return
	}
	name := r.URL.Path[len("/feed/"):]
	seq, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		http.Error(w, "after is no number", http.StatusBadRequest)
		return
	}
	items, grown := s.after(name, seq)
	if len(items) == 0 {
		select {
		case <-grown:
		case <-time.After(maxWait):
		case <-r.Context().Done():
			return
		}
		items, _ = s.after(name, seq)
	}
	_ = json.NewEncoder(w).Encode(items) // an error means that the client is gone
}
