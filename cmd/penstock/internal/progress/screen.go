package progress

import (
	"bytes"
	"io"
	"sync"
	"unicode/utf8"
)

// Screen writes lines, and below them a status that the next one replaces. On a stream that is no terminal there is no
// status, only lines. It is safe for concurrent use.
//
// The lock is held while writing: that lines stay whole and in order is all it is for. A terminal that was stopped therefore stops whoever
// prints, as it does with any program.
type Screen struct {
	width int // of the terminal; 0 when the output is none

	mu struct {
		sync.Mutex
		out    io.Writer
		status string
	}
}

// NewScreen returns a screen on out. width is the number of columns of the terminal, 0 when out is none.
func NewScreen(out io.Writer, width int) *Screen {
	s := &Screen{width: width}
	s.mu.out = out
	return s
}

// Terminal reports whether there is a status line.
func (s *Screen) Terminal() bool { return s.width > 0 }

const clearLine = "\r\x1b[K"

// Line writes a line that stays.
func (s *Screen) Line(text string) { _, _ = s.Write([]byte(text + "\n")) }

// Write writes whole lines that stay. It is there for loggers. An error of the output is dropped: nobody is left to tell.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	if s.mu.status != "" {
		b.WriteString(clearLine)
	}
	b.Write(lines)
	b.WriteString(s.mu.status)
	_, _ = s.mu.out.Write(b.Bytes())
	return len(lines), nil
}

// Status replaces the status line; empty removes it. Without a terminal it does nothing.
func (s *Screen) Status(text string) {
	if !s.Terminal() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text = cut(text, s.width-1)
	if text == s.mu.status {
		return
	}
	s.mu.status = text
	_, _ = io.WriteString(s.mu.out, clearLine+text)
}

// cut keeps a status within one line of the terminal: a wrapped one could not be overwritten.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(columns, 0)])
}
