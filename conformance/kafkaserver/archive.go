package kafkaserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// archiveFile holds the broker's classes as the JVM has them in memory once they are loaded and checked. With it a broker starts
// with half the work. It belongs to one JVM and one place of the files; another JVM ignores it.
const archiveFile = "classes.jsa"

// archive runs a broker once, lets it do what tests will ask for, and has the JVM write the archive when it ends. A JVM that
// cannot do this writes none.
func (d *distribution) archive(ctx context.Context) error {
	recording := *d
	recording.flags = []string{"-XX:ArchiveClassesAtExit=" + filepath.Join(d.dir, archiveFile)}
	s := &Server{dir: filepath.Join(d.dir, "scratch")}
	defer func() {
		s.kill()
		_ = os.RemoveAll(s.dir)
	}()
	if err := s.start(ctx, &recording, []int{1}, 1, 0); err != nil {
		return err
	}
	if err := exercise(ctx, s.Addrs()); err != nil {
		return err
	}
	return s.Terminate(1)
}

// exercise writes a record in a transaction and reads it.
func exercise(ctx context.Context, addrs []string) error {
	const topic = "exercise"
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.TransactionalID(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DisableClientMetrics())
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		return fmt.Errorf("kafkaserver: create a topic on a new server: %w", err)
	}
	if err := client.BeginTransaction(); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	record := &kgo.Record{Topic: topic, Value: []byte(topic)}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("kafkaserver: write to a new server: %w", err)
	}
	if err := kafkatest.AwaitNoted(ctx, client, record); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("kafkaserver: commit to a new server: %w", err)
	}
	if err := client.PollFetches(ctx).Err(); err != nil {
		return fmt.Errorf("kafkaserver: read from a new server: %w", err)
	}
	return nil
}

// withArchive returns d with the flags that use the archive, if there is one.
func (d *distribution) withArchive() *distribution {
	archive := filepath.Join(d.dir, archiveFile)
	if _, err := os.Stat(archive); err == nil {
		d.flags = []string{"-XX:SharedArchiveFile=" + archive}
	}
	return d
}
