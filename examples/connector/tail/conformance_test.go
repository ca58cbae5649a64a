package tail_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/examples/connector/tail"
	"github.com/penstock-dev/penstock/sdk"
)

// system is the server behind a network that hangs, fails and drops connections when the suite wants it to.
type system struct {
	*inprocess.Network
	server *tail.Server
	served chan struct{}
}

func newSystem(topics int) *system {
	s := &system{Network: inprocess.NewNetwork(), server: tail.NewServer(), served: make(chan struct{})}
	go func() {
		defer close(s.served)
		s.server.Serve(s.Listener())
	}()
	s.Grow(topics)
	return s
}

func (s *system) Append(part int, values ...string) { s.server.Publish(strconv.Itoa(part), values...) }

// Grow implements [conformance.Grower].
func (s *system) Grow(topics int) {
	for i := range topics {
		s.server.Publish(strconv.Itoa(i)) // nothing, to one that may be there
	}
}

func (s *system) Close() {
	s.Network.Close()
	<-s.served
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness[tail.Split, *system]{
		Backend: newSystem,
		Source:  func(s *system) sdk.Source[tail.Split] { return &tail.Source{Addr: "server:1", Dial: s.Dial, Buffer: 5} },
		Bounded: func(s *system) sdk.Source[tail.Split] {
			return &tail.Source{Addr: "server:1", Dial: s.Dial, Buffer: 5, Once: true}
		},
		Delay: time.Minute, // after an outage it takes up to 35 s until a connection is made again
	})
}
