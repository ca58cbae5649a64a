package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/runtime/telemetry"
)

// server answers /metrics, /healthz and /readyz.
type server struct {
	address string
	http    *http.Server
	done    chan struct{}

	mu struct {
		sync.Mutex
		ready func() bool
		ended <-chan struct{}
	}
}

const (
	headerTimeout = 5 * time.Second
	closeTimeout  = time.Second
)

// serve listens at once, so that a bad address fails before the job starts.
func serve(address string, stats *telemetry.Registry) (*server, error) {
	metrics, err := telemetry.Handler(stats)
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("penstock: --metrics: %w (want a free address such as 127.0.0.1:9100)", err)
	}
	s := &server{address: listener.Addr().String(), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.readiness)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with close
	}()
	return s, nil
}

// watch says what to ask once the job has started.
func (s *server) watch(ready func() bool, ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.ready, s.mu.ended = ready, ended
}

func (s *server) state() (ready, ended bool) {
	s.mu.Lock()
	r, e := s.mu.ready, s.mu.ended
	s.mu.Unlock()
	select {
	case <-e: // nil before the start, and then never ready to receive
		return false, true
	default:
		return r != nil && r(), false
	}
}

// health answers 200 for as long as the job has not ended.
func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	if _, ended := s.state(); ended {
		http.Error(w, "the job has ended", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// readiness answers 200 while the job reads.
func (s *server) readiness(w http.ResponseWriter, _ *http.Request) {
	if ready, _ := s.state(); !ready {
		http.Error(w, "the job is not reading", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		_ = s.http.Close()
	}
	<-s.done
}
