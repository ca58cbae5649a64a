package kinesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/sdk"
)

// events is the stream whose hash keys the parts of a system share.
const events = "events"

// system is a stream behind a network that hangs, fails and drops connections when the suite wants it to. A part is a hash key, so it goes on
// in a child when its shard is split.
type system struct {
	*inprocess.Network
	server    *kinesistest.Server
	host      int64
	keys      []string // of the parts: the first hash key of the shard that was made for it
	perRecord int      // how many values a record holds, as an aggregate when there are several

	failed  int // how often Fail was called
	refusal *kinesistest.Injection
}

var (
	_ conformance.Failer  = (*system)(nil)
	_ conformance.Dropper = (*system)(nil)
	_ conformance.Grower  = (*system)(nil)
)

// wires are the network as the server has it.
type wires struct{ *inprocess.Network }

func (w wires) Listen(_, _ string) (net.Listener, error) { return w.Listener(), nil }

func (w wires) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return w.DialKept(ctx, network, address) // the client is the server's, which closes it
}

func newSystem(parts int) *system {
	n := inprocess.NewNetwork()
	server, err := kinesistest.New(kinesistest.Options{Network: wires{n}})
	if err != nil {
		panic(err)
	}
	s := &system{Network: n, server: server, host: hosts.Add(1), perRecord: 1}
	must(server.CreateStream(events, parts))
	for _, shard := range s.shards() {
		s.keys = append(s.keys, shard.FirstHash)
	}
	return s
}

func (s *system) shards() []kinesistest.Shard {
	shards, err := s.server.Shards(events)
	must(err)
	return shards
}

func (s *system) Append(part int, values ...string) {
	var records []kinesistest.Record
	for some := range slices.Chunk(values, s.perRecord) {
		records = append(records, kinesistest.Record{Data: stored(some), PartitionKey: "any", ExplicitHashKey: s.keys[part]})
	}
	_, err := s.server.Put(events, records...)
	must(err)
}

// stored is a record with a value, or an aggregate of some.
func stored(values []string) []byte {
	if len(values) == 1 {
		return []byte(values[0])
	}
	parts := make([][]byte, len(values))
	for i, v := range values {
		parts[i] = onePart(0, -1, v)
	}
	return aggregate([]string{"any"}, nil, parts...)
}

// Fail breaks connections, and every other time has the service answer with an error instead.
func (s *system) Fail(calls int) {
	s.Network.Fail(0)
	if s.refusal != nil {
		s.refusal.Remove()
		s.refusal = nil
	}
	if calls == 0 {
		return
	}
	if s.failed++; s.failed%2 == 1 {
		s.Network.Fail(calls)
		return
	}
	s.refusal = s.server.Inject(kinesistest.Fault{Times: calls, Effect: kinesistest.InternalError()})
}

// Grow splits the shards of the first parts: each goes on in the lower child, and the upper one is a new part.
func (s *system) Grow(parts int) {
	for part := 0; len(s.keys) < parts; part++ {
		upper := splitPart(s.shards(), s.keys[part], func(shard string) (lower, upper string, err error) { return s.server.Split(events, shard) })
		s.keys = append(s.keys, firstHash(s.shards(), upper))
	}
}

// splitPart splits the open shard of a part and returns the upper child.
func splitPart(shards []kinesistest.Shard, key string, split func(shard string) (lower, upper string, err error)) string {
	at := slices.IndexFunc(shards, func(sh kinesistest.Shard) bool { return sh.Open() && sh.FirstHash == key })
	if at < 0 {
		must(errors.New("no open shard begins with the hash key of the part"))
	}
	_, upper, err := split(shards[at].ID)
	must(err)
	return upper
}

func firstHash(shards []kinesistest.Shard, id string) string {
	return shards[slices.IndexFunc(shards, func(sh kinesistest.Shard) bool { return sh.ID == id })].FirstHash
}

// must ends a case that cannot go on.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (s *system) Close() {
	s.Network.Close()
	s.server.Close()
}

func (s *system) source() *Source {
	return &Source{
		Stream: events, Region: kinesistest.Region, Endpoint: fmt.Sprintf("http://conformance-%d.test", s.host),
		Credentials: Credentials{AccessKeyID: "a", SecretAccessKey: "b"},
		// Some cases let hours pass, and every look at the shards takes time of the wall.
		DiscoveryInterval: time.Minute,
		Client:            []func(*aws.Options){func(o *aws.Options) { o.HTTPClient = s.server.HTTPClient() }},
	}
}

// harness is for sources that are configured in a way.
func harness(backend func(parts int) *system, configure func(*Source)) conformance.Harness[Split, *system] {
	return conformance.Harness[Split, *system]{
		Backend: backend,
		Source: func(s *system) sdk.Source[Split] {
			source := s.source()
			configure(source)
			return source
		},
		Bounded: func(s *system) sdk.Source[Split] {
			source := s.source()
			configure(source)
			source.Stop = Latest()
			return source
		},
		Golden:    "../../testdata/splits/kinesis-v%d-one.bin",
		Discovery: 2 * time.Minute,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harness(newSystem, func(*Source) {}))
}

func TestConformanceWithEnhancedFanOut(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harness(newSystem, fanOut))
}

// A position in the middle of an aggregate is one like any other. What the cases that are left out look at does not depend on it.
func TestConformanceOfAggregates(t *testing.T) {
	t.Parallel()
	aggregated := func(parts int) *system {
		s := newSystem(parts)
		s.perRecord = 3
		return s
	}
	results, err := conformance.Examine(t, harness(aggregated, takeApart), "reader/", "end/", "state/", "checkpoint/", "engine/a_job_is_killed", "engine/rescales")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Failed() || r.Skipped != "" {
			t.Errorf("%s %s\n%s", r.Name, r.Skipped, r)
		}
	}
}
