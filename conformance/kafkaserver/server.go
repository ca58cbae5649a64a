package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/conformance/process"
)

const (
	// startWithin bounds the time until all nodes are ready. On an idle machine they are within 3 s (one) or 10 s (a cluster).
	startWithin = 90 * time.Second
	// starts is how often the start of a server is tried: somebody else may take a port between its choice and its use.
	starts = 3
	// clusterBrokers is how many brokers a cluster has, beside one controller.
	clusterBrokers = 3
	// controllerNode is the node id of the controller of a cluster.
	controllerNode = 100
)

// Server is one running Kafka server of one node or more. Nodes are named by Kafka's node ids: 1 for a single one, 1 to 3 for the brokers
// of a cluster. Methods may be called from any goroutine; those that change a node wait for each other.
type Server struct {
	options   Options
	dir       string
	temporary bool
	authority *Authority
	nodes     map[int]*node // immutable once started
	external  []string      // addresses of a server that is not ours
}

// New starts a server of one node and returns when it serves. The caller closes it. When there can be no server here the error is an
// [UnavailableError].
func New(ctx context.Context, o Options) (*Server, error) {
	return newServer(ctx, o, []int{1}, 1)
}

// NewCluster starts three brokers and a controller of their own, so that a majority is left whatever broker is lost, and returns when
// all of them serve. The caller closes it. When there can be no server here the error is an [UnavailableError].
func NewCluster(ctx context.Context, o Options) (*Server, error) {
	brokers := make([]int, clusterBrokers)
	for i := range brokers {
		brokers[i] = i + 1
	}
	return newServer(ctx, o, brokers, controllerNode)
}

// newServer starts brokers. The controller is one of them or a node of its own.
func newServer(ctx context.Context, o Options, brokers []int, controller int) (*Server, error) {
	if err := process.Supported(); err != nil {
		return nil, &UnavailableError{Reason: err.Error()}
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	dist, err := findDistribution(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, dir: o.Dir}
	if s.dir == "" {
		s.temporary = true
		if s.dir, err = os.MkdirTemp("", "kafkaserver-"); err != nil {
			return nil, fmt.Errorf("kafkaserver: %w", err)
		}
	}
	if o.TLS {
		if s.authority, err = NewAuthority(filepath.Join(s.dir, "tls")); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	for try := range starts {
		if err = s.start(ctx, dist, brokers, controller, try); err == nil {
			return s, nil
		}
		s.kill()
		if ctx.Err() != nil || !errors.Is(err, errExited) {
			break
		}
	}
	return nil, errors.Join(err, s.Close())
}

// start starts all nodes at once in folders of their own.
func (s *Server) start(ctx context.Context, dist *distribution, brokers []int, controller, try int) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	listeners := s.options.listeners()
	ports, err := freePorts(ctx, 1+len(brokers)*len(listeners))
	if err != nil {
		return err
	}
	voters := fmt.Sprintf("%d@%s", controller, address(ports[0]))
	common := s.options.properties(len(brokers), s.authority)
	cluster := newID()
	s.nodes = make(map[int]*node)
	for i, id := range brokers {
		n := newNode(dist, filepath.Join(s.dir, fmt.Sprintf("try-%d", try)), id)
		for k, listener := range listeners {
			n.ports[listener] = ports[1+i*len(listeners)+k]
		}
		n.roles = "broker"
		if id == controller {
			n.roles, n.ports[controllerListener] = "broker,controller", ports[0]
		}
		s.nodes[id] = n
	}
	if s.nodes[controller] == nil {
		n := newNode(dist, filepath.Join(s.dir, fmt.Sprintf("try-%d", try)), controller)
		n.roles, n.ports[controllerListener] = "controller", ports[0]
		s.nodes[controller] = n
	}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(s.nodes))) { // the controller first: the others wait for it
		if err := s.nodes[id].prepare(cluster, voters, common); err != nil {
			return err
		}
		if err := s.nodes[id].start(); err != nil {
			return err
		}
	}
	return s.WaitReady(ctx)
}

// Addrs are the brokers' addresses on the Plaintext listener, ordered by node id.
func (s *Server) Addrs() []string { return s.ListenerAddrs(Plaintext) }

// ListenerAddrs are the brokers' addresses on a listener, ordered by node id; none when the options did not ask for that listener.
func (s *Server) ListenerAddrs(l Listener) []string {
	if s.external != nil {
		if l != Plaintext {
			return nil
		}
		return slices.Clone(s.external)
	}
	var addrs []string
	for _, id := range s.Brokers() {
		if port, ok := s.nodes[id].ports[l]; ok {
			addrs = append(addrs, address(port))
		}
	}
	return addrs
}

// Brokers are the node ids of the brokers, ascending; none when the server is not ours.
func (s *Server) Brokers() []int {
	var ids []int
	for id, n := range s.nodes {
		if _, ok := n.ports[Plaintext]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Authority is what signed the brokers' certificates; nil without [Options.TLS].
func (s *Server) Authority() *Authority { return s.authority }

// Owned reports that this process started the server, and may therefore stop and kill its nodes.
func (s *Server) Owned() bool { return s.external == nil }

// Close kills all nodes and removes the folder if New made it. It may be called twice.
func (s *Server) Close() error {
	s.kill()
	if s.temporary {
		if err := os.RemoveAll(s.dir); err != nil {
			return fmt.Errorf("kafkaserver: %w", err)
		}
	}
	return nil
}

// kill ends all nodes. A test has no use for an orderly end, which takes seconds.
func (s *Server) kill() {
	for _, n := range s.nodes {
		_ = n.end(process.Kill)
	}
}

// Log returns the last lines of every node's log, for a failing test.
func (s *Server) Log(lines int) string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[id]
		fmt.Fprintf(&text, "node %s, %s:\n%s\n", strconv.Itoa(id), n.logPath, tail(n.logPath, lines))
	}
	return text.String()
}
