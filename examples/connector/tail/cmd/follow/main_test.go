package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/examples/connector/tail"
)

var value = regexp.MustCompile(`"value":"message ([0-9]+)"`)

// committed counts the messages in files whose names do not begin with a dot: those are complete.
func committed(t *testing.T, dir string) (all int, seen map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "messages", "[^.]*"))
	if err != nil {
		t.Fatal(err)
	}
	seen = map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range value.FindAllStringSubmatch(string(text), -1) {
			all++
			seen[m[1]] = true
		}
	}
	return all, seen
}

// once fails unless n messages are there, each once.
func once(t *testing.T, dir string, n int) {
	t.Helper()
	if all, seen := committed(t, dir); all != n || len(seen) != n {
		t.Errorf("%d messages, %d different ones, want %d", all, len(seen), n)
	}
}

func TestWithoutAnAddressItReadsASample(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run(t.Context(), []string{"-dir", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	once(t, dir, 1000)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Each run is stopped when everything is there, and the next one goes on, although the server has forgotten what was acknowledged meanwhile.
func TestStartedAgainItGoesOn(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := tail.NewServer()
	defer serve(server, listener)()
	dir, messages := t.TempDir(), 0
	for range 3 {
		for range 250 {
			server.Publish([]string{"a", "b", "c"}[messages%3], fmt.Sprintf("message %d", messages))
			messages++
		}
		ctx, stop := context.WithCancel(t.Context())
		out := writerFunc(func(b []byte) (int, error) {
			if all, _ := committed(t, dir); all >= messages {
				stop()
			}
			return len(b), nil
		})
		if err := run(ctx, []string{"-addr", listener.Addr().String(), "-dir", dir, "-interval", "20ms"}, out); err != nil {
			t.Fatal(err)
		}
		once(t, dir, messages)
		server.Trim("a")
	}
}

func TestAnAddressWithoutAServerIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-addr", "127.0.0.1:1", "-dir", t.TempDir()}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "connect to 127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}
