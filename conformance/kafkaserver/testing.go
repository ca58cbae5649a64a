package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	// Switch is the environment variable that says whether tests start servers: "off" leaves the tests out that need one, "require" fails
	// them where a server cannot be had, and anything else skips them there.
	Switch = "PENSTOCK_TEST_SERVERS"
	// External is the environment variable with the addresses, separated by commas, of a Kafka cluster that is used instead of starting
	// one. Tests that need special options or control of the nodes are skipped then.
	External = "PENSTOCK_TEST_KAFKA"
)

// logLines is how much of each node's log a failing test shows.
const logLines = 30

// Start starts a server of one node for a test and closes it when the test ends. Where there can be no server, or in short mode, it
// skips the test and says why. When the test fails it shows the end of the logs and keeps them.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	return start(t, o, New)
}

// StartCluster is [Start] for a cluster of three brokers.
func StartCluster(t testing.TB, o Options) *Server {
	t.Helper()
	if addrs := os.Getenv(External); addrs != "" {
		skip(t, "the test needs control of a cluster, and %s=%s names one that is not ours", External, addrs)
	}
	return start(t, o, NewCluster)
}

func start(t testing.TB, o Options, begin func(context.Context, Options) (*Server, error)) *Server {
	t.Helper()
	checkSwitch(t)
	if addrs := os.Getenv(External); addrs != "" {
		if !o.plain() {
			skip(t, "the test needs a server with options of its own, and %s=%s names one that is not ours", External, addrs)
		}
		return &Server{external: strings.Split(addrs, ",")}
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := begin(t.Context(), o)
	if err != nil {
		giveUp(t, err)
	}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			s.showLogs(t)
		}
	})
	return s
}

// checkSwitch skips a test that is not to have a server.
func checkSwitch(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: the test needs a real Kafka server, which -short leaves out")
	}
	if os.Getenv(Switch) == "off" {
		t.Skipf("SKIPPED: the test needs a real Kafka server, and %s=off", Switch)
	}
}

// giveUp ends a test whose server did not start.
func giveUp(t testing.TB, err error) {
	t.Helper()
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		skip(t, "%s", unavailable.Reason)
	}
	t.Fatal(err)
}

func skip(t testing.TB, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(Switch) == "require" {
		t.Fatalf("no real Kafka server, and %s=require: %s", Switch, reason)
	}
	t.Skip("SKIPPED: no real Kafka server: " + reason)
}

// RequireOwned skips a test that kills or freezes nodes, or counts on the settings of this package, when the server is not ours.
func (s *Server) RequireOwned(t testing.TB) {
	t.Helper()
	if !s.Owned() {
		skip(t, "the test needs control of the server, and %s=%s names one that is not ours", External, strings.Join(s.external, ","))
	}
}

// showLogs prints the end of every log and copies the logs to where they outlive the test.
func (s *Server) showLogs(t testing.TB) {
	t.Helper()
	if !s.Owned() {
		return
	}
	kept, err := os.MkdirTemp("", "kafkaserver-logs-") //nolint:usetesting // it outlives the test, on purpose
	if err != nil {
		t.Errorf("keep the logs of the server: %v", err)
		return
	}
	for _, n := range s.nodes {
		if err := copyFile(filepath.Join(kept, filepath.Base(n.logPath)), n.logPath); err != nil {
			t.Errorf("keep the logs of the server: %v", err)
		}
	}
	t.Logf("the logs of the Kafka server are kept in %s\n%s", kept, s.Log(logLines))
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// shared are the servers that tests of one binary have in common; see [Shared].
var shared struct {
	single, cluster sharedServer
}

type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns a server of one node, without options, that all tests of the binary share: a test uses topics of its own. It is started when
// first asked for, and closed by [Main], which the package's TestMain must call.
func Shared(t testing.TB) *Server {
	t.Helper()
	checkSwitch(t)
	if addrs := os.Getenv(External); addrs != "" {
		return &Server{external: strings.Split(addrs, ",")}
	}
	return shared.single.get(t, Options{}, New)
}

// SharedCluster is [Shared] for a cluster with FastFailover. A test that stops a broker starts it again and waits with
// [Server.WaitReady] before it ends; such tests do not run in parallel.
func SharedCluster(t testing.TB) *Server {
	t.Helper()
	checkSwitch(t)
	if addrs := os.Getenv(External); addrs != "" {
		skip(t, "the test needs control of a cluster, and %s=%s names one that is not ours", External, addrs)
	}
	return shared.cluster.get(t, Options{FastFailover: true}, NewCluster)
}

func (s *sharedServer) get(t testing.TB, o Options, begin func(context.Context, Options) (*Server, error)) *Server {
	t.Helper()
	s.once.Do(func() {
		s.server, s.err = begin(context.WithoutCancel(t.Context()), o)
	})
	if s.err != nil {
		giveUp(t, s.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.server.showLogs(t)
		}
	})
	return s.server
}

// Main runs the tests of a package and then closes the shared servers:
//
//	func TestMain(m *testing.M) { os.Exit(kafkaserver.Main(m)) }
func Main(m interface{ Run() int }) int {
	code := m.Run()
	for _, s := range []*sharedServer{&shared.single, &shared.cluster} {
		if s.server == nil {
			continue
		}
		if err := s.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}
