package tail

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is a server of the protocol, in memory. Its methods may be called from any goroutine.
type Server struct {
	mu     sync.Mutex
	names  []string // in the order in which they were made
	topics map[string]*topic
	grown  chan struct{} // closed and replaced by Publish
}

// topic is what a server keeps of a topic.
type topic struct {
	forgotten int64 // so many of the first messages
	messages  []message
	acked     int64 // what is before this number is not needed any more
	followers int   // that have a connection
}

func (t *topic) next() int64 { return t.forgotten + int64(len(t.messages)) + 1 }

// NewServer returns a server with empty topics of these names.
func NewServer(topics ...string) *Server {
	s := &Server{topics: map[string]*topic{}, grown: make(chan struct{})}
	for _, name := range topics {
		s.Publish(name)
	}
	return s
}

// Publish adds messages to a topic, which is made when it is not there. A message is one line.
func (s *Server) Publish(name string, texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		t = &topic{}
		s.topics[name] = t
		s.names = append(s.names, name)
	}
	for _, text := range texts {
		t.messages = append(t.messages, message{number: t.next(), at: time.Now(), text: text})
	}
	close(s.grown)
	s.grown = make(chan struct{})
}

// Acknowledged answers the number before which messages of a topic are not needed any more.
func (s *Server) Acknowledged(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topics[name].acked
}

// Followers answers how many connections follow a topic.
func (s *Server) Followers(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topics[name].followers
}

// Trim forgets what was acknowledged of a topic, and answers how many messages are kept.
func (s *Server) Trim(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if gone := t.acked - 1 - t.forgotten; gone > 0 {
		t.messages = append([]message(nil), t.messages[gone:]...)
		t.forgotten += gone
	}
	return len(t.messages)
}

// Serve answers connections until the listener is closed, and returns when all of them have ended.
func (s *Server) Serve(l net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() { s.serve(conn) })
	}
}

// serve answers one command. What cannot be written has nobody to read it.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // see above
	in := bufio.NewReaderSize(conn, maxLine)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	words := strings.Fields(string(line))
	switch {
	case len(words) == 1 && words[0] == "LIST":
		_, _ = conn.Write(s.list())
	case len(words) == 3 && words[0] == "TAIL":
		from, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || from < 1 {
			fmt.Fprintf(conn, "ERR syntax %.80q is no number of a message\n", words[2])
			return
		}
		s.tail(conn, in, words[1], from)
	default:
		fmt.Fprintf(conn, "ERR syntax %.80q is no command\n", line)
	}
}

func (s *Server) list() (text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		text = fmt.Appendf(text, "TOPIC %s %d\n", name, s.topics[name].next())
	}
	return append(text, "END\n"...)
}

// tail pushes a topic until the connection breaks.
func (s *Server) tail(conn net.Conn, in *bufio.Reader, name string, from int64) {
	s.follow(name, +1)
	defer s.follow(name, -1)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.listen(in, name)
	}()
	defer func() {
		_ = conn.Close() // which ends listen
		<-gone
	}()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for pinged := time.Now(); ; {
		text, next, grown := s.from(name, from)
		if len(text) == 0 {
			select {
			case <-grown:
			case <-tick.C:
			case <-gone:
				return
			}
		}
		if time.Since(pinged) >= pingEvery {
			text, pinged = append(text, wordPing+"\n"...), time.Now()
		}
		if len(text) == 0 {
			continue
		}
		if _, err := conn.Write(text); err != nil || next == 0 {
			return
		}
		from = next
	}
}

func (s *Server) follow(name string, change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name]; t != nil {
		t.followers += change
	}
}

// listen hears acknowledgements until the connection breaks.
func (s *Server) listen(in *bufio.Reader, name string) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if number, ok := positive(strings.TrimSpace(strings.TrimPrefix(string(line), "ACK "))); ok {
			s.acknowledge(name, number)
		}
	}
}

func (s *Server) acknowledge(name string, number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name]; t != nil {
		t.acked = max(t.acked, min(number, t.next()))
	}
}

// perWrite is how many messages are written together.
const perWrite = 20

// from is what to push from a number on, and the number after that; 0 when nothing may follow. Without anything to push it answers what tells
// that there is more.
func (s *Server) from(name string, number int64) (text []byte, next int64, grown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	switch {
	case t == nil:
		return fmt.Appendf(nil, "ERR unknown there is no topic %.80q\n", name), 0, nil
	case number <= t.forgotten:
		return fmt.Appendf(nil, "ERR gone %s is kept from message %d on\n", name, t.forgotten+1), 0, nil
	case number > t.next():
		return fmt.Appendf(nil, "ERR syntax message %d of %s comes after %d\n", number, name, t.next()), 0, nil
	}
	left := t.messages[number-t.forgotten-1:]
	for _, m := range left[:min(len(left), perWrite)] {
		text = fmt.Appendf(text, "%s %d %d %s\n", wordMessage, m.number, m.at.UnixMilli(), m.text)
		number++
	}
	return text, number, s.grown
}
