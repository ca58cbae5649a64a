package main

import (
	"bufio"
	"context"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
	"github.com/penstock-dev/penstock/testdata/rides"
)

// beTheProgram, in the environment, makes this test binary the program, so that it can be killed.
const beTheProgram = "KAFKA_EMBEDDED"

func TestMain(m *testing.M) {
	if os.Getenv(beTheProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	topic      = "rides"
	partitions = 4
)

// town is a topic that fills up, and what the sums of it must be.
type town struct {
	t      *testing.T
	broker *kafkatest.Broker
	next   int64
	want   map[string]takings
}

func newTown(t *testing.T) *town {
	broker := kafkatest.Start(t, kafkatest.Options{Topics: map[string]int32{topic: partitions}})
	return &town{t: t, broker: broker, want: map[string]takings{}}
}

// drive adds n rides to the topic.
func (w *town) drive(n int) {
	w.t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		ride := rides.At(w.next)
		w.next++
		sum := w.want[ride.Driver]
		w.want[ride.Driver] = takings{Rides: sum.Rides + 1, Cents: sum.Cents + int64(math.Round(ride.Fare*100))}
		records[i] = &kgo.Record{Topic: topic, Partition: ride.Partition(partitions), Key: ride.Key(), Value: ride.Value()}
	}
	if err := w.broker.Produce(w.t.Context(), records...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *town) args(dir string, more ...string) []string {
	return append([]string{"-brokers", strings.Join(w.broker.Addrs(), ","), "-topic", topic, "-dir", dir, "-interval", "20ms"}, more...)
}

func read(t *testing.T, dir string) book {
	t.Helper()
	l, err := openLedger(filepath.Join(dir, "takings.json"))
	if err != nil {
		t.Fatal(err)
	}
	return l.book
}

func count(drivers map[string]takings) (n int64) {
	for _, d := range drivers {
		n += d.Rides
	}
	return n
}

func (w *town) check(dir string) {
	w.t.Helper()
	got := read(w.t, dir)
	if !maps.Equal(got.Drivers, w.want) || got.Unreadable != 0 {
		w.t.Errorf("%d rides of %d drivers, %d unreadable; want %d rides of %d drivers, or the sums differ",
			count(got.Drivers), len(got.Drivers), got.Unreadable, w.next, len(w.want))
	}
}

func TestWhatATopicHolds(t *testing.T) {
	t.Parallel()
	town, dir := newTown(t), t.TempDir()
	town.drive(3000)
	for range 2 { // a job that has finished does nothing more
		if err := run(t.Context(), town.args(dir, "-until-end"), io.Discard); err != nil {
			t.Fatal(err)
		}
		town.check(dir)
	}
}

// Each life is killed while rides arrive, just after a commit, which is where counting twice would show; each has another parallelism.
// The last one is stopped as Ctrl-C does.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	town, dir := newTown(t), t.TempDir()
	town.drive(1000)
	for _, parallelism := range []int{2, 1, 3} {
		life(t, town, town.args(dir, "-parallelism", strconv.Itoa(parallelism)))
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	all := writerFunc(func(b []byte) (int, error) {
		if count(read(t, dir).Drivers) >= town.next {
			stop()
		}
		return len(b), nil
	})
	if err := run(ctx, town.args(dir), all); err != nil {
		t.Fatal(err)
	}
	town.check(dir)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// life starts the program, lets some rides arrive after each of its checkpoints, and kills it.
func life(t *testing.T, town *town, args []string) {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0], args...)
	program.Env = append(os.Environ(), beTheProgram+"=1")
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	lines, seen := bufio.NewScanner(out), 0
	for seen < 3 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "checkpoint ") {
			seen++
			town.drive(500)
		}
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // what it said before it died: Wait must not close the pipe before
	}
	_ = program.Wait() // it was killed
	if seen < 3 {
		t.Fatalf("ended after %d checkpoints", seen)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), []string{"-brokrs", "x"}, &out); err == nil || !strings.Contains(out.String(), "-brokrs") {
		t.Errorf("error %v, output %q", err, out.String())
	}
}
