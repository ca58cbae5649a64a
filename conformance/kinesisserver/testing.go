package kinesisserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

const (
	// Switch is the environment variable that says whether tests start servers: "off" leaves the tests out that need one, "require" fails
	// them where a server cannot be had, and anything else skips them there.
	Switch = "PENSTOCK_TEST_SERVERS"
	// External is the environment variable with the endpoint of a server that is used instead of starting one, such as "http://127.0.0.1:4567" or "127.0.0.1:4567".
	External = "PENSTOCK_TEST_KINESIS"
)

// shared is the server that tests of one binary have in common.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns a server that all tests of the binary share: a test uses streams of its own. It is started when first asked for, and closed by [Main], which the
// package's TestMain must call. Where there can be no server, or in short mode, it skips the test and says why.
func Shared(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: the test needs a real Kinesis emulator, which -short leaves out")
	}
	if os.Getenv(Switch) == "off" {
		t.Skipf("SKIPPED: the test needs a real Kinesis emulator, and %s=off", Switch)
	}
	if endpoint := os.Getenv(External); endpoint != "" {
		if !strings.Contains(endpoint, "://") {
			endpoint = "http://" + endpoint
		}
		return &Server{endpoint: endpoint}
	}
	shared.once.Do(func() {
		shared.server, shared.err = New(context.WithoutCancel(t.Context()))
	})
	if unavailable, ok := errors.AsType[*UnavailableError](shared.err); ok && os.Getenv(Switch) != "require" {
		t.Skip("SKIPPED: no real Kinesis emulator: " + unavailable.Reason)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the emulator ends with\n%s", shared.server.Log())
		}
	})
	return shared.server
}

// Main runs the tests of a package and then closes the shared server:
//
//	func TestMain(m *testing.M) { os.Exit(kinesisserver.Main(m)) }
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// activeWithin bounds how long a stream may take to be made.
const activeWithin = time.Minute

// CreateStream makes a stream whose name begins with prefix, waits until it is active, and deletes it when the test ends. It returns the name.
func (s *Server) CreateStream(t testing.TB, prefix string, shards int32) string {
	t.Helper()
	client, name := s.Client(), prefix+"-"+strings.ToLower(rand.Text())
	if _, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: &name, ShardCount: &shards}); err != nil {
		t.Fatalf("kinesisserver: create stream %s: %v", name, err)
	}
	t.Cleanup(func() {
		enforce := true
		if _, err := client.DeleteStream(context.WithoutCancel(t.Context()), &kinesis.DeleteStreamInput{StreamName: &name, EnforceConsumerDeletion: &enforce}); err != nil {
			t.Logf("kinesisserver: delete stream %s: %v", name, err)
		}
	})
	AwaitActive(t, client, name)
	return name
}

// AwaitActive waits until a stream is made, or a change of it is over.
func AwaitActive(t testing.TB, client *kinesis.Client, stream string) {
	t.Helper()
	wait := kinesis.NewStreamExistsWaiter(client, func(o *kinesis.StreamExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, 200*time.Millisecond
	})
	if err := wait.Wait(t.Context(), &kinesis.DescribeStreamInput{StreamName: &stream}, activeWithin); err != nil {
		t.Fatalf("kinesisserver: wait for stream %s: %v", stream, err)
	}
}
