package cursor_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/examples/connector/cursor"
	"github.com/penstock-dev/penstock/sdk"
)

// system is the server behind a network that hangs, fails and drops connections when the suite wants it to.
type system struct {
	*inprocess.Network
	server *cursor.Server
}

func newSystem(streams int) *system {
	s := &system{Network: inprocess.NewNetwork(), server: cursor.NewServer("secret")}
	s.Serve(s.server)
	s.Grow(streams)
	return s
}

func (s *system) Append(part int, values ...string) { s.server.Add(strconv.Itoa(part), values...) }

// Grow implements [conformance.Grower].
func (s *system) Grow(streams int) {
	for i := range streams {
		s.server.Add(strconv.Itoa(i)) // nothing, to one that may be there
	}
}

// source reads pages of seven, so that they end everywhere.
func (s *system) source(once bool) *cursor.Source {
	return &cursor.Source{URL: "http://api.example.com", Token: "secret", HTTP: s.Client(), PageSize: 7, Once: once}
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness[cursor.Split, *system]{
		Backend: newSystem,
		Source:  func(s *system) sdk.Source[cursor.Split] { return s.source(false) },
		Bounded: func(s *system) sdk.Source[cursor.Split] { return s.source(true) },
		Delay:   time.Minute, // after an outage it takes up to 30 s until a stream is asked again
	})
}
