package kinesistest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// Options of a server. The zero value is one on a free port of the loopback interface with the service's limits and the system's time.
type Options struct {
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// InMemory leaves the network out, so that the server can run in a testing/synctest bubble. It is reached with [Server.Client] and [Server.HTTPClient] only.
	InMemory bool
	// Network, when set, carries the connections in place of TCP, also in a bubble; Port and InMemory are then ignored.
	Network Network
	// Clock is the server's time; nil is a running one.
	Clock *Clock
	// Unlimited lifts the limits on calls and bytes a second, for tests of volume. Limits of one request stay.
	Unlimited bool
	// ControlTime is how long streams stay CREATING or UPDATING, and consumers CREATING. Shards change at once.
	ControlTime time.Duration
	// MaxBytes is how much data the server holds, 1 GiB by default. What does not fit is refused with LimitExceededException.
	MaxBytes int64
	// Observe, when set, is called for each request when its answer is known and before it is sent, by many goroutines at once. It may wait, which holds the answer back.
	Observe func(Call)
}

// Network carries the connections of a server in the process, such as one that hangs and fails.
type Network interface {
	Listen(network, address string) (net.Listener, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Call is a request that was served.
type Call struct {
	Operation string // such as "GetRecords"
	Target
	At    time.Time // by the server's clock
	Error string    // name of the error that was answered, empty for none
	Fault string    // name of the fault that hit it, empty for none
}

const defaultMaxBytes = 1 << 30

// Server is a running double of the service. Its methods may be called from any goroutine.
type Server struct {
	options  Options
	clock    *Clock
	sealer   sealer
	listener net.Listener
	http     *http.Server
	client   *http.Client
	served   chan struct{} // closed when nothing is accepted any more
	faults   faults

	mu struct {
		sync.Mutex
		streams    map[string]*stream
		created    int64 // second of the newest stream, as its sequence numbers have it
		held       int64 // bytes of data
		generation uint64
		calls      map[string]int
	}
}

// New starts a server. The caller closes it.
func New(o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = NewRunningClock()
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	s := &Server{options: o, clock: o.Clock, sealer: newSealer(), served: make(chan struct{})}
	s.mu.streams, s.mu.calls = make(map[string]*stream), make(map[string]int)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	if o.Network == nil && o.InMemory {
		o.Network = newPipes()
	}
	if err := s.listen(o, transport); err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	s.client = &http.Client{Transport: detached{transport}}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(s.listener) // ends with Close
	}()
	return s, nil
}

// listen opens the server's end, and makes the client's connections lead there.
func (s *Server) listen(o Options, transport *http.Transport) (err error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))
	if o.Network != nil {
		s.listener, err = o.Network.Listen("tcp", address)
		transport.DialContext = o.Network.DialContext
		return err
	}
	var listen net.ListenConfig
	s.listener, err = listen.Listen(context.Background(), "tcp", address)
	return err
}

// TB is the part of testing.TB that [Start] needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start starts a server that ends with the test.
func Start(t TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and what is under way.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.served
	s.client.CloseIdleConnections()
}

// Endpoint is the URL to give a client as its endpoint.
func (s *Server) Endpoint() string { return "http://" + s.listener.Addr().String() }

// HTTPClient reaches the server, also one that is InMemory.
func (s *Server) HTTPClient() *http.Client { return s.client }

// Client is one of the AWS SDK for this server, with credentials made up and the SDK's own settings otherwise; options are applied last.
//
// Subscriptions of one client share a decoder inside the SDK (smithy-go v1.28.9), which the race detector reports when two are open at once. An option of the call gives
// each its own, here and at the service:
//
//	func(o *kinesis.Options) { o.Protocol = awsjson.New11(schemas.Kinesis_20131202) }
func (s *Server) Client(options ...func(*kinesis.Options)) *kinesis.Client {
	endpoint := s.Endpoint()
	return kinesis.New(kinesis.Options{
		Region: Region, BaseEndpoint: &endpoint, HTTPClient: s.client,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "kinesistest", SecretAccessKey: "kinesistest"}, nil
		}),
	}, options...)
}

// Clock is the server's time.
func (s *Server) Clock() *Clock { return s.clock }

// Advance puts the server's clock forward.
func (s *Server) Advance(d time.Duration) { s.clock.Advance(d) }

// ExpireIterators ends all shard iterators issued so far, as the service does now and then before their time.
func (s *Server) ExpireIterators() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.generation++
}

// Calls is how many requests for an operation, such as "GetRecords", were served, whatever was answered.
func (s *Server) Calls(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.calls[operation]
}
