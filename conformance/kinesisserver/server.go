package kinesisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/conformance/process"
)

const (
	// startWithin bounds the time until the server answers, which is a second or two on an idle machine.
	startWithin = time.Minute
	// starts is how often the start is tried: somebody else may take a port between its choice and its use.
	starts = 3
	// controlTime is how long the emulator takes for changes of streams.
	controlTime = "50ms"
)

var errExited = errors.New("kinesisserver: the emulator ended by itself")

// Server is one running emulator, or another endpoint that tests were told to use. Methods may be called from any goroutine.
type Server struct {
	endpoint string
	process  *process.Process // nil when the server is not ours
	dir      string
}

// New starts a server and returns when it answers. The caller closes it. When there can be no server here the error is an [UnavailableError].
func New(ctx context.Context) (*Server, error) { return launch(ctx, startLocal) }

// launch tries a few times to start one of the emulators.
func launch(ctx context.Context, start func(context.Context, *Server, *distribution) error) (*Server, error) {
	if err := process.Supported(); err != nil {
		return nil, &UnavailableError{Reason: err.Error()}
	}
	dist, err := findDistribution(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kinesisserver-")
	if err != nil {
		return nil, fmt.Errorf("kinesisserver: %w", err)
	}
	s := &Server{dir: dir}
	for range starts {
		if err = start(ctx, s, dist); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || !errors.Is(err, errExited) {
			break
		}
	}
	return nil, errors.Join(err, s.Close())
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "server.log") }

func startLocal(ctx context.Context, s *Server, dist *distribution) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	env := []string{"KINESIS_MOCK_PLAIN_PORT=" + strconv.Itoa(ports[0]), "KINESIS_MOCK_TLS_PORT=" + strconv.Itoa(ports[1]), "SHARD_LIMIT=1000", "LOG_LEVEL=ERROR"}
	for _, change := range []string{"CREATE_STREAM", "DELETE_STREAM", "SPLIT_SHARD", "MERGE_SHARDS", "UPDATE_SHARD_COUNT", "REGISTER_STREAM_CONSUMER", "DEREGISTER_STREAM_CONSUMER"} {
		env = append(env, change+"_DURATION="+controlTime)
	}
	if err := s.run(process.Command{Program: dist.node, Args: []string{"main.js"}, Dir: dist.program(), Env: env}); err != nil {
		return err
	}
	s.endpoint = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	if err := s.await(ctx); err != nil {
		return errors.Join(err, s.process.End())
	}
	return nil
}

// run starts the server's process.
func (s *Server) run(c process.Command) (err error) {
	c.Log = s.logPath()
	if s.process, err = process.Start(c); err != nil {
		return fmt.Errorf("kinesisserver: %w", err)
	}
	return nil
}

// await asks until the server answers.
func (s *Server) await(ctx context.Context) error {
	client := s.Client()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		_, err := client.ListStreams(ctx, &kinesis.ListStreamsInput{})
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-s.process.Exited():
			return fmt.Errorf("%w: its log ends with\n%s", errExited, s.Log())
		case <-ctx.Done():
			return fmt.Errorf("kinesisserver: not ready: %w\n%s", errors.Join(context.Cause(ctx), err), s.Log())
		}
	}
}

// freePorts returns ports that nobody listens on, below those that systems hand to outgoing connections. Each is chosen at random, so that test processes
// that start servers at the same time do not choose the same.
func freePorts(ctx context.Context, n int) ([]int, error) {
	const first, last = 20_000, 32_000
	var (
		listen net.ListenConfig
		ports  []int
		failed error
	)
	for range 100 * n {
		port := first + rand.IntN(last-first)
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err != nil {
			failed = err
			continue
		}
		defer func() { _ = l.Close() }() // held until all are found
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("kinesisserver: no free port between %d and %d: %w", first, last, errors.Join(failed, ctx.Err()))
}

// Endpoint is the URL to give a client as its endpoint.
func (s *Server) Endpoint() string { return s.endpoint }

// Owned reports that this process started the server.
func (s *Server) Owned() bool { return s.process != nil }

// Client is one of the AWS SDK for this server, with credentials made up and one attempt per call; options are applied last.
func (s *Server) Client(options ...func(*kinesis.Options)) *kinesis.Client {
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: &s.endpoint, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "kinesisserver", SecretAccessKey: "kinesisserver"}, nil
		}),
	}, options...)
}

// Log is the end of what the server wrote.
func (s *Server) Log() string {
	const most = 4 << 10
	data, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(data[max(0, len(data)-most):]))
}

// Close kills the server and removes what it left. It may be called twice.
func (s *Server) Close() error {
	var err error
	if s.process != nil {
		err = s.process.End()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	if err != nil {
		return fmt.Errorf("kinesisserver: %w", err)
	}
	return nil
}
