package kafkaserver_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

func TestMain(m *testing.M) { os.Exit(kafkaserver.Main(m)) }

func ping(t *testing.T, addrs []string) {
	t.Helper()
	if err := pingErr(t, addrs); err != nil {
		t.Fatal(err)
	}
}

func TestASharedServerIsTheSameForAll(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	s := kafkaserver.Shared(t)
	t.Logf("ready after %s", time.Since(begin))
	ping(t, s.Addrs())
	if again := kafkaserver.Shared(t); !slices.Equal(again.Addrs(), s.Addrs()) {
		t.Errorf("addresses %v, then %v", s.Addrs(), again.Addrs())
	}
}

func TestRecordsSurviveAKillAndARestartOnTheSamePort(t *testing.T) {
	t.Parallel()
	s := kafkaserver.Start(t, kafkaserver.Options{})
	s.RequireOwned(t)
	client := produce(t, s, "survives")
	defer client.Close()
	addrs := s.Addrs()
	if err := s.Kill9(1); err != nil {
		t.Fatal(err)
	}
	if err := pingErr(t, addrs); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := s.Restart(1); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Addrs(), addrs) {
		t.Errorf("addresses %v, before %v", s.Addrs(), addrs)
	}
	if err := s.Restart(1); err == nil {
		t.Error("a running node was started again")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil || fetches.NumRecords() != 1 {
		t.Errorf("%d records, %v", fetches.NumRecords(), err)
	}
}

// produce writes one record to a new topic and returns a client that reads it.
func produce(t *testing.T, s *kafkaserver.Server, topic string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAFrozenServerAnswersNothingUntilItGoesOn(t *testing.T) {
	t.Parallel()
	s := kafkaserver.Start(t, kafkaserver.Options{})
	s.RequireOwned(t)
	if err := s.Stop(1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := s.WaitReady(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server: %v", err)
	}
	if err := s.Cont(1); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(1); err != nil {
		t.Fatal(err)
	}
	if err := s.Kill9(1); err != nil {
		t.Errorf("a frozen server cannot be killed: %v", err)
	}
}

func TestAServerThatCannotStartSaysWhyWithItsLog(t *testing.T) {
	t.Parallel()
	kafkaserver.Shared(t) // skips where there is no server
	_, err := kafkaserver.New(t.Context(), kafkaserver.Options{Properties: map[string]string{"num.network.threads": "none"}})
	failed, ok := errors.AsType[*kafkaserver.NodeError](err)
	if !ok || failed.Node != 1 || !strings.Contains(failed.LogTail, "num.network.threads") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsThatWouldBreakTheConfigurationAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []kafkaserver.Options{
		{Users: map[string]string{`b"ob`: "secret"}},
		{Users: map[string]string{"bob": ""}},
		{Users: map[string]string{"bob": "a;b"}},
		{Properties: map[string]string{"a=b": "c"}},
		{Properties: map[string]string{"": "c"}},
	} {
		if s, err := kafkaserver.New(t.Context(), o); err == nil {
			t.Errorf("%+v was accepted", o)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
