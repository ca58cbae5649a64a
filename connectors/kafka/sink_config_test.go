package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/sdk"
)

func TestATransactionMustOutliveTheCheckpointInterval(t *testing.T) {
	t.Parallel()
	s := Sink{TransactionTimeout: 15 * time.Minute}
	if err := s.CheckInterval(7*time.Minute + 30*time.Second); err != nil {
		t.Error(err)
	}
	err := s.CheckInterval(10 * time.Minute)
	if err == nil || !strings.Contains(err.Error(), "15m0s") || !strings.Contains(err.Error(), "10m0s") || !strings.Contains(err.Error(), "20m0s") {
		t.Errorf("got %v", err)
	}
	s.Delivery = AtLeastOnce
	if err := s.CheckInterval(time.Hour); err != nil {
		t.Error(err)
	}
}

func TestSinkValidation(t *testing.T) {
	good := Sink{Brokers: []string{"localhost:9092"}, Topic: "t"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Sink){
		"brokers":              func(s *Sink) { s.Brokers = nil },
		"topic":                func(s *Sink) { s.Topic = "" },
		"keep_topic":           func(s *Sink) { s.KeepTopic = true },
		"delivery":             func(s *Sink) { s.Delivery = "maybe" },
		"partitioning":         func(s *Sink) { s.Partitioning = "random" },
		"compression":          func(s *Sink) { s.Compression = "rar" },
		"on_older":             func(s *Sink) { s.OnOlder = "shrug" },
		"on_lost":              func(s *Sink) { s.OnLost = "shrug" },
		"linger":               func(s *Sink) { s.Linger = time.Hour },
		"transaction_timeout":  func(s *Sink) { s.TransactionTimeout = time.Millisecond },
		"batch_max_bytes":      func(s *Sink) { s.BatchMaxBytes = 1 },
		"max_buffered_records": func(s *Sink) { s.MaxBufferedRecords = -1 },
		"max_buffered_bytes":   func(s *Sink) { s.MaxBufferedBytes = 1 },
		"tls":                  func(s *Sink) { s.TLS = &TLS{CertFile: "x"} },
	} {
		s := good
		change(&s)
		_, err := s.NewWriter(lentWriter{"job", 0, 1, newInstruments()})
		if err == nil || !errors.Is(err, sdk.ErrFatal) || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := good.NewWriter(lentWriter{"a job", 0, 1, newInstruments()}); !errors.Is(err, sdk.ErrFatal) {
		t.Errorf("a job name with a space: %v", err)
	}
}

// An outage holds the writer up, and its context ends the wait.
func TestSinkWaitsForTheCluster(t *testing.T) {
	b := kafkatest.Start(t, kafkatest.Options{})
	arrived := make(chan struct{}, 1)
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		select {
		case arrived <- struct{}{}:
		default:
		}
		return nil, errors.New("down"), true
	})
	for _, delivery := range []Delivery{ExactlyOnce, AtLeastOnce} {
		t.Run(string(delivery), func(t *testing.T) {
			g := (&target{addrs: b.Addrs()}).fresh(t, 1)
			g.sink.Delivery, g.sink.MaxBufferedRecords = delivery, 1
			w, err := g.sink.NewWriter(lentWriter{g.job, 0, 1, newInstruments()})
			g.must(err)
			g.must(w.Open(t.Context()))
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-arrived
				<-arrived // the second is of this writer for sure
				cancel(sdk.ErrClosed)
			}()
			if err := w.Write(ctx, counting(0, 3)); !errors.Is(err, sdk.ErrClosed) {
				t.Errorf("got %v", err)
			}
			done, end := context.WithCancel(t.Context())
			end()
			_ = w.Close(done)
		})
	}
}

// The protocol before KIP-890 part 2, in which the end of a transaction leaves the producer's epoch as it is.
func TestSinkOnTransactionsOfLevelOne(t *testing.T) {
	const level = 1
	s := kafkaserver.Start(t, kafkaserver.Options{})
	if !s.Owned() {
		t.Skip("SKIPPED: the test lowers the transaction.version of a server of its own")
	}
	g := &target{t: t, addrs: s.Addrs(), real: true}
	features := kmsg.NewPtrUpdateFeaturesRequest()
	update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	update.Feature, update.MaxVersionLevel, update.UpgradeType = transactionFeature, level, 2 // a downgrade
	features.FeatureUpdates = append(features.FeatureUpdates, update)
	resp, err := features.RequestWith(t.Context(), g.client())
	g.must(err)
	g.must(kerr.ErrorForCode(resp.ErrorCode))
	g.eventually("lowered", func() bool {
		versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), g.client())
		g.must(err)
		for _, f := range versions.FinalizedFeatures {
			if f.Name == transactionFeature && f.MaxVersionLevel > level {
				return false
			}
		}
		return true
	})
	runSinkScenarios(t, g)
	t.Run("a restore of an older checkpoint repeats nothing unasked", func(t *testing.T) { testSinkOlder(t, g) })
}

func TestSinkErrorsOfALoginWithoutRights(t *testing.T) {
	s := kafkaserver.Start(t, kafkaserver.Options{ACLs: true, Users: map[string]string{"alice": "secret"}})
	g := (&target{t: t, addrs: s.Addrs(), real: true}).fresh(t, 1)
	g.sink.Brokers = s.ListenerAddrs(kafkaserver.SASLPlaintext)
	g.sink.SASL = &SASL{Mechanism: Plain, User: "alice", Password: "secret"}
	admin := g.admin()
	allow := func(b *kadm.ACLBuilder) {
		t.Helper()
		results, err := admin.CreateACLs(t.Context(), b.Allow("User:alice").AllowHosts("*").ResourcePatternType(kadm.ACLPatternPrefixed))
		g.must(err)
		for _, r := range results {
			g.must(r.Err)
		}
	}
	denied := func(what string, is error, try func() error) {
		t.Helper()
		if err := try(); !errors.Is(err, is) || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
	open := func() error { return g.unopened(0).Open(t.Context()) }
	denied("grant it WRITE and DESCRIBE on the topic", ErrLogin, open)
	allow(kadm.NewACLs().Topics(g.sink.Topic).Operations(kadm.OpDescribe))
	g.eventually("allowed to describe", func() bool { return open() == nil })
	w := g.writer(0)
	write := func() error {
		w := g.writer(0)
		if err := w.Write(t.Context(), counting(0, 1)); err != nil {
			return err
		}
		_, err := w.Prepare(t.Context(), 1)
		return err
	}
	denied("transactional_id_prefix", ErrLogin, write)
	p := prepared{Job: g.job, ID: slotID(DefaultIDPrefix, g.job, 0, 0), ProducerID: 1}
	data, err := p.encode()
	g.must(err)
	denied("transactional_id_prefix", ErrLogin, func() error { return w.Commit(t.Context(), data) })
	allow(kadm.NewACLs().TransactionalIDs(DefaultIDPrefix+"-"+g.job).Operations(kadm.OpWrite, kadm.OpDescribe))
	g.eventually("allowed to use the id", func() bool { return !strings.Contains(fmt.Sprint(write()), "transactional_id_prefix") })
	denied("grant it WRITE and DESCRIBE on the topic", ErrLogin, write)
	allow(kadm.NewACLs().Topics(g.sink.Topic).Operations(kadm.OpWrite))
	g.eventually("allowed to write", func() bool { return write() == nil })
	g.writer(0).restore()
}
