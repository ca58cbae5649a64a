package kinesis

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	aws "github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/conformance"
	"github.com/penstock-dev/penstock/conformance/inprocess"
	"github.com/penstock-dev/penstock/conformance/kinesisserver"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/sdk"
)

// realSystem is a stream of its own in the emulator. The source reaches that through a network that hangs and fails, and what changes the stream does
// not.
type realSystem struct {
	*inprocess.Network
	emulator *kinesisserver.Server
	on       remote
	stream   string
	keys     []string // of the parts, as in a system
}

func newRealSystem(t *testing.T, emulator *kinesisserver.Server, client *aws.Client, parts int) *realSystem {
	s := &realSystem{
		Network: inprocess.NewNetwork(), emulator: emulator, on: remote{t, client, 20 * time.Millisecond},
		stream: "conformance-" + strings.ToLower(rand.Text()),
	}
	address, err := url.Parse(emulator.Endpoint())
	must(err)
	s.Forward(func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address.Host)
	})
	must(s.on.CreateStream(s.stream, parts))
	for _, shard := range s.shards() {
		s.keys = append(s.keys, shard.FirstHash)
	}
	return s
}

func (s *realSystem) shards() []kinesistest.Shard {
	listed, err := s.on.shards(s.stream)
	must(err)
	shards := make([]kinesistest.Shard, len(listed))
	for i := range listed {
		shards[i] = kinesistest.Shard{ID: *listed[i].ShardId, FirstHash: *listed[i].HashKeyRange.StartingHashKey}
		if isClosed(&listed[i]) {
			shards[i].Ending = *listed[i].SequenceNumberRange.EndingSequenceNumber
		}
	}
	return shards
}

// maxPut is what the service takes in one call.
const maxPut = 500

func (s *realSystem) Append(part int, values ...string) {
	for some := range slices.Chunk(values, maxPut) {
		records := make([]kinesistest.Record, len(some))
		for i, v := range some {
			records[i] = kinesistest.Record{Data: []byte(v), PartitionKey: "any", ExplicitHashKey: s.keys[part]}
		}
		_, err := s.on.Put(s.stream, records...)
		must(err)
	}
}

func (s *realSystem) Grow(parts int) {
	for part := 0; len(s.keys) < parts; part++ {
		upper := splitPart(s.shards(), s.keys[part], func(shard string) (lower, upper string, err error) { return s.on.Split(s.stream, shard) })
		s.keys = append(s.keys, firstHash(s.shards(), upper))
	}
}

func (s *realSystem) Close() {
	s.Network.Close()
	_ = s.on.DeleteStream(s.stream) // a server that is not ours is left as it was, if that is possible
}

func (s *realSystem) source() *Source {
	return &Source{
		Stream: s.stream, Region: "us-east-1", Endpoint: s.emulator.Endpoint(), PollInterval: 200 * time.Millisecond, DiscoveryInterval: time.Second,
		Credentials: Credentials{AccessKeyID: "kinesisserver", SecretAccessKey: "kinesisserver"},
		Client: []func(*aws.Options){func(o *aws.Options) {
			o.HTTPClient = &http.Client{Transport: detached{s.Client().Transport}}
		}},
	}
}

func TestConformanceOnTheEmulator(t *testing.T) {
	t.Parallel()
	emulator := kinesisserver.Shared(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	client := emulator.Client(func(o *aws.Options) { o.HTTPClient = &http.Client{Transport: detached{transport}} })
	conformance.Run(t, conformance.Harness[Split, *realSystem]{
		Backend: func(parts int) *realSystem { return newRealSystem(t, emulator, client, parts) },
		Source:  func(s *realSystem) sdk.Source[Split] { return s.source() },
		Bounded: func(s *realSystem) sdk.Source[Split] {
			source := s.source()
			source.Stop = Latest()
			return source
		},
		Golden: "../../testdata/splits/kinesis-v%d-one.bin",
		Wall:   true, Delay: time.Second, Discovery: 4 * time.Second,
	})
}
