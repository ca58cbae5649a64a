package kafkatest

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Options of a cluster. The zero value is one broker on a free port, without topics.
type Options struct {
	// Brokers is the number of brokers; default 1.
	Brokers int
	// Port is the port of the first broker on 127.0.0.1, the others follow; 0 takes free ones.
	Port int
	// Topics are created at the start: name and number of partitions.
	Topics map[string]int32
	// AutoCreate lets clients create topics by writing to them.
	AutoCreate bool
	// DataDir keeps the data in a directory; empty keeps it in memory.
	DataDir string
	// Network, when set, replaces TCP, so that the cluster can run in a testing/synctest bubble. Clients then need
	// [Broker.ClientOptions], and Port must be given.
	Network Network
	// Extra options for kfake, after those that follow from the fields above.
	Extra []kfake.Opt
}

// Network carries the connections of a cluster in the process: a *kfake.VirtualNetwork, or one that does more.
type Network interface {
	Listen(network, address string) (net.Listener, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Broker is a running cluster. Its methods may be called from any goroutine.
type Broker struct {
	cluster *kfake.Cluster
	network Network

	mu struct {
		sync.Mutex
		producer     *kgo.Client // made when first needed
		transactions int         // numbers transactional ids
		truncated    map[partition]int64
	}
}

type partition struct {
	topic  string
	number int32
}

// NewBroker starts a cluster. The caller closes it.
func NewBroker(o Options) (*Broker, error) {
	count := max(o.Brokers, 1)
	options := []kfake.Opt{kfake.NumBrokers(count)}
	if o.Port != 0 {
		ports := make([]int, count)
		for i := range ports {
			ports[i] = o.Port + i
		}
		options = append(options, kfake.Ports(ports...))
	}
	for topic, partitions := range o.Topics {
		options = append(options, kfake.SeedTopics(partitions, topic))
	}
	if o.AutoCreate {
		options = append(options, kfake.AllowAutoTopicCreation())
	}
	if o.DataDir != "" {
		options = append(options, kfake.DataDir(o.DataDir))
	}
	if o.Network != nil {
		options = append(options, kfake.ListenFn(o.Network.Listen))
	}
	cluster, err := kfake.NewCluster(append(options, o.Extra...)...)
	if err != nil {
		return nil, fmt.Errorf("kafkatest: start the embedded broker: %w", err)
	}
	b := &Broker{cluster: cluster, network: o.Network}
	b.mu.truncated = make(map[partition]int64)
	b.answerEpochs()
	return b, nil
}

// TB is the part of testing.TB that [Start] needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start starts a cluster that ends with the test.
func Start(t TB, o Options) *Broker {
	t.Helper()
	b, err := NewBroker(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(b.Close)
	return b
}

// Addrs are the addresses to connect to, one a broker.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Cluster is the kfake cluster, for faults and whatever else this package does not name.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// ClientOptions let a franz-go client find the cluster, also on a virtual network.
func (b *Broker) ClientOptions() []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}
	if b.network != nil {
		options = append(options, kgo.Dialer(b.network.DialContext))
	}
	return options
}

// Close stops the cluster and forgets its data, unless there is a DataDir.
func (b *Broker) Close() {
	b.mu.Lock()
	producer := b.mu.producer
	b.mu.producer = nil
	b.mu.Unlock()
	if producer != nil {
		producer.Close()
	}
	b.cluster.Close()
}

// CreateTopic creates a topic with broker-side settings such as "cleanup.policy", which may be nil.
func (b *Broker) CreateTopic(name string, partitions int32, settings map[string]string) error {
	if err := b.cluster.CreateTopic(name, partitions, settings); err != nil {
		return fmt.Errorf("kafkatest: create topic %q: %w", name, err)
	}
	return nil
}

// AddPartitions grows a topic to the given number of partitions.
func (b *Broker) AddPartitions(ctx context.Context, topic string, partitions int32) error {
	return b.grow(ctx, topic, partitions)
}
