package feed_test

import (
	"strconv"
	"testing"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/examples/connector/feed"
	"github.com/penstock-dev/penstock/sdk"
)

// system is a feed server behind a network that hangs, fails and drops connections when the suite wants it to.
type system struct {
	*inprocess.Network
	server *feed.Server
}

func newSystem(feeds int) *system {
	s := &system{Network: inprocess.NewNetwork(), server: feed.NewServer()}
	s.Serve(s.server)
	s.Grow(feeds)
	return s
}

// Append implements [conformance.Backend].
func (s *system) Append(part int, values ...string) { s.server.Add(strconv.Itoa(part), values...) }

// Grow implements [conformance.Grower].
func (s *system) Grow(feeds int) {
	for i := range feeds {
		s.server.Add(strconv.Itoa(i)) // nothing, to one that may be there
	}
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness[feed.Split, *system]{
		Backend: newSystem,
		Source: func(s *system) sdk.Source[feed.Split] {
			return &feed.Source{URL: "http://feeds", HTTP: s.Client()}
		},
		Bounded: func(s *system) sdk.Source[feed.Split] {
			return &feed.Source{URL: "http://feeds", HTTP: s.Client(), Once: true}
		},
	})
}
