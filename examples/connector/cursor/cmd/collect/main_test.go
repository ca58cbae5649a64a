package main

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/examples/connector/cursor"
)

var value = regexp.MustCompile(`"value":"event ([0-9]+)"`)

// committed counts the events in files whose names do not begin with a dot: those are complete.
func committed(t *testing.T, dir string) (all int, seen map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "events", "[^.]*"))
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

// once fails unless n events are there, each once.
func once(t *testing.T, dir string, n int) {
	t.Helper()
	if all, seen := committed(t, dir); all != n || len(seen) != n {
		t.Errorf("%d events, %d different ones, want %d", all, len(seen), n)
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

// Each run is stopped when everything is there, and the next one goes on.
func TestStartedAgainItGoesOn(t *testing.T) {
	server := cursor.NewServer(token)
	web := httptest.NewServer(server)
	defer web.Close()
	t.Setenv("API_TOKEN", token)
	dir, events := t.TempDir(), 0
	for range 3 {
		for range 250 {
			server.Add([]string{"a", "b", "c"}[events%3], fmt.Sprintf("event %d", events))
			events++
		}
		ctx, stop := context.WithCancel(t.Context())
		out := writerFunc(func(b []byte) (int, error) {
			if all, _ := committed(t, dir); all >= events {
				stop()
			}
			return len(b), nil
		})
		if err := run(ctx, []string{"-url", web.URL, "-dir", dir, "-interval", "20ms"}, out); err != nil {
			t.Fatal(err)
		}
		once(t, dir, events)
	}
}

func TestAWrongTokenIsSaidAtTheStart(t *testing.T) {
	t.Setenv("API_TOKEN", "wrong")
	web := httptest.NewServer(cursor.NewServer(token))
	defer web.Close()
	err := run(t.Context(), []string{"-url", web.URL, "-dir", t.TempDir()}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "invalid_token") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %v", err)
	}
}
