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
	var names []string
	for i := range feeds {
		names = append(names, strconv.Itoa(i))
	}
	s := &system{Network: inprocess.NewNetwork(), server: feed.NewServer(names...)}
	s.Serve(s.server)
	return s
}

func (s *system) Append(part int, values ...string) {
	for _, v := range values {
		s.server.Add(strconv.Itoa(part), v)
	}
}

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Harness[feed.Split, *system]{
		Backend: newSystem,
		Source: func(s *system) sdk.Source[feed.Split] {
			return &feed.Source{URL: "http://feeds", HTTP: s.Client()}
		},
	})
}
