package tail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Limits and times of the protocol.
const (
	maxLine   = 64 << 10 // bytes, with its end
	pingEvery = 5 * time.Second
	maxSilent = 3 * pingEvery
)

// What a server says.
const (
	wordTopic   = "TOPIC"
	wordEnd     = "END"
	wordMessage = "MSG"
	wordPing    = "PING"
	wordError   = "ERR"
)

var (
	// ErrGone says that the server does not keep any more what is asked for.
	ErrGone = errors.New("tail: the messages are gone")
	// ErrUnknown says that the server has no such topic.
	ErrUnknown = errors.New("tail: no such topic")
	// ErrProtocol says that a line makes no sense.
	ErrProtocol = errors.New("tail: the server does not speak the protocol")
)

// message is one message of a topic.
type message struct {
	number int64
	at     time.Time
	text   string
}

// heard is a line of a server.
type heard struct {
	word string
	name string // of a topic
	next int64  // of a topic: the number of the message to come
	message
}

// parse reads a line without its end. An ERR is an error.
func parse(line string) (h heard, err error) {
	word, rest, _ := strings.Cut(line, " ")
	h.word = word
	ok := false
	switch word {
	case wordPing, wordEnd:
		ok = rest == ""
	case wordTopic:
		var number string
		h.name, number, _ = strings.Cut(rest, " ")
		h.next, ok = positive(number)
		ok = ok && h.name != ""
	case wordMessage:
		number, rest, _ := strings.Cut(rest, " ")
		millis, text, hasText := strings.Cut(rest, " ")
		ms, err := strconv.ParseInt(millis, 10, 64)
		h.number, ok = positive(number)
		ok = ok && err == nil && hasText
		h.at, h.text = time.UnixMilli(ms), text
	case wordError:
		return h, refusal(rest)
	}
	if !ok {
		return heard{}, fmt.Errorf("%w: it said %.80q", ErrProtocol, line)
	}
	return h, nil
}

func positive(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0
}

// refusal is the error that a server told.
func refusal(text string) error {
	code, why, _ := strings.Cut(text, " ")
	switch code {
	case "gone":
		return fmt.Errorf("%w: %.200s", ErrGone, why)
	case "unknown":
		return fmt.Errorf("%w: %.200s", ErrUnknown, why)
	default:
		return fmt.Errorf("tail: the server refused: %.200s", text)
	}
}

// connection speaks to a server. It belongs to one goroutine, but for the end of the context that it was made with, which breaks it.
type connection struct {
	net.Conn
	in    *bufio.Reader
	leave func() bool
}

// connect makes a connection that lives no longer than ctx.
func (s *Source) connect(ctx context.Context) (*connection, error) {
	dial := s.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	bounded, cancel := context.WithTimeout(ctx, maxSilent)
	defer cancel()
	conn, err := dial(bounded, "tcp", s.Addr)
	if err != nil {
		return nil, fmt.Errorf("tail: connect to %s: %w", s.Addr, err)
	}
	leave := context.AfterFunc(ctx, func() { _ = conn.Close() }) // whoever reads or writes then fails, and looks at ctx
	return &connection{Conn: conn, in: bufio.NewReaderSize(conn, maxLine), leave: leave}, nil
}

func (c *connection) close() {
	c.leave()
	_ = c.Close() // there is nothing left to write
}

// say sends a line.
func (c *connection) say(format string, args ...any) error {
	if err := c.SetWriteDeadline(time.Now().Add(maxSilent)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c, format+"\n", args...)
	return err
}

// hear waits for a line, but not for ever. What comes without the end of its line was cut off, and is no line: taken for one it would be a message
// with half its text.
func (c *connection) hear() (heard, error) {
	_ = c.SetReadDeadline(time.Now().Add(maxSilent)) // of a connection that is closed there may be lines left in the buffer; the read says the rest
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return heard{}, fmt.Errorf("%w: a line has more than %d bytes", ErrProtocol, maxLine)
	}
	if err != nil {
		return heard{}, err
	}
	return parse(string(line[:len(line)-1])) // a copy: the buffer is used again
}
