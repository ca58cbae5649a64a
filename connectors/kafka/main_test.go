package kafka

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka/kafkatest"
)

// brokerBytes, in the environment, makes this test binary a broker that serves records of that size without end, so that
// its work is not part of what is measured.
const brokerBytes = "KAFKA_BENCH_BROKER_BYTES"

const benchPartitions = 8

func TestMain(m *testing.M) {
	if size := os.Getenv(brokerBytes); size != "" {
		os.Exit(serveBench(size))
	}
	goleak.VerifyTestMain(withServers{m})
}

// withServers closes the servers that tests share before the search for leaks.
type withServers struct{ m *testing.M }

func (w withServers) Run() int { return kafkaserver.Main(w.m) }

func serveBench(size string) int {
	n, err := strconv.Atoi(size)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b, err := kafkatest.NewBroker(kafkatest.Options{
		Brokers: 3, Topics: map[string]int32{"bench": benchPartitions},
		Extra: []kfake.Opt{kfake.SyntheticFetch(kfake.SyntheticBatch{RecordBytes: n, Records: 64 << 10 / n})},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer b.Close()
	fmt.Println(strings.Join(b.Addrs(), ","))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // ends with its parent
		return 1
	}
	return 0
}
