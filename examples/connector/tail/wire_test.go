package tail

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]heard{
		"PING":                     {word: wordPing},
		"END":                      {word: wordEnd},
		"TOPIC a 7":                {word: wordTopic, name: "a", next: 7},
		"MSG 3 1700000000123 a  b": {word: wordMessage, message: message{3, time.UnixMilli(1700000000123), "a  b"}},
		"MSG 3 -1 ":                {word: wordMessage, message: message{3, time.UnixMilli(-1), ""}},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q is %+v, error %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "PONG", "PING x", "TOPIC", "TOPIC a", "TOPIC  7", "TOPIC a 0", "MSG", "MSG 1", "MSG 1 2", "MSG 0 1 a", "MSG x 1 a", "MSG 1 x a", "msg 1 1 a",
	} {
		if got, err := parse(text); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q is %+v, error %v", text, got, err)
		}
	}
	for text, want := range map[string]error{"ERR gone a": ErrGone, "ERR unknown": ErrUnknown} {
		if _, err := parse(text); !errors.Is(err, want) {
			t.Errorf("%q is %v", text, err)
		}
	}
	if _, err := parse("ERR busy come back"); err == nil || errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "busy come back") {
		t.Errorf("a busy server is %v", err)
	}
}

func FuzzLine(f *testing.F) {
	for _, text := range []string{"PING", "END", "TOPIC a 7", "MSG 3 1700000000123 a  b", "ERR gone a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parse(text)
		if err == nil && h.word == wordMessage && h.number < 1 {
			t.Errorf("%q is message %d", text, h.number)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// script is a server that says these lines to everybody who follows a topic, and then closes the connection.
func script(t *testing.T, said ...string) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			_, _ = server.Read(make([]byte, maxLine))
			for _, text := range said {
				_, _ = server.Write([]byte(text))
			}
		}()
		return client, nil
	}
}

// The connection breaks in the middle of a line. What has arrived of it reads like a message, and is none.
func TestALineThatWasCutOffIsNoMessage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Dial = script(t, "MSG 1 1 1\n", "MSG 2 1 2 and there is m")
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		w.want(f, "a", 1, 1)
		pass(time.Second)
		if got := f.take(); len(got.Chunks) > 0 {
			t.Errorf("half a message was taken for one: %+v", got.Chunks)
		}
	})
}

// A gap is asked for again; as long as it is there nothing is taken from behind it.
func TestAGapIsNotSkipped(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Dial = script(t, "MSG 1 1 1\n", "MSG 3 1 3\n")
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		w.want(f, "a", 1, 1)
		w.fails(f, ErrProtocol, `topic "a"`, "message 1 came where 2 was due")
	})
}

func TestALineWithoutEndIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Dial = script(t, "MSG 1 1 "+strings.Repeat("x", 2*maxLine))
		f := w.fetcher(10, Split{Topic: "a", Next: 1})
		defer w.close(f)
		w.fails(f, ErrProtocol, "more than 65536 bytes")
	})
}

func TestProbeSaysWhatIsWrong(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		if err := w.source.Probe(t.Context()); err != nil {
			t.Errorf("a source that works: %v", err)
		}
		for want, s := range map[string]*Source{
			"Buffer is -1":   {Buffer: -1},
			"GiveUp -1ns":    {GiveUp: -1},
			"it said":        {Dial: script(t, "220 mail.example.com\r\n")},
			"PING in a list": {Dial: script(t, "PING\n")},
		} {
			if err := s.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		w.network.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := w.source.Probe(ctx); err == nil || time.Since(began) > time.Second {
			t.Errorf("a server that hangs: %v after %s", err, time.Since(began))
		}
		synctest.Wait()
	})
}
