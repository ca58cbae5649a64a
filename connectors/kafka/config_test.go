package kafka

import (
	"strings"
	"testing"
	"time"
)

func valid() Source {
	return Source{Brokers: []string{"127.0.0.1:9092", "kafka.example:9092", "[::1]:9092"}, Topics: []string{"orders"}}
}

func TestTheDefaultsAreValid(t *testing.T) {
	t.Parallel()
	s := valid()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	d := s.withDefaults()
	if d.DiscoveryInterval != 30*time.Second || d.FetchMaxWait != 250*time.Millisecond || d.Start.kind != earliestPosition {
		t.Errorf("defaults: %+v", d)
	}
	if s.FetchMaxWait != 0 {
		t.Error("withDefaults changed its receiver")
	}
}

func TestValidateNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		change func(*Source)
		says   string
	}{
		{func(s *Source) { s.Brokers = nil }, "brokers: none given"},
		{func(s *Source) { s.Brokers = []string{"kafka"} }, `brokers: "kafka": not of the form host:port`},
		{func(s *Source) { s.Brokers = []string{":9092"} }, "the host is missing"},
		{func(s *Source) { s.Brokers = []string{"kafka:0"} }, `port "0"`},
		{func(s *Source) { s.Brokers = []string{"kafka:99999"} }, `port "99999"`},
		{func(s *Source) { s.Topics = nil }, "topics: none given"},
		{func(s *Source) { s.Pattern = "x" }, "pattern: given beside topics"},
		{func(s *Source) { s.Topics = []string{"a b"} }, `topics: "a b" is no topic name`},
		{func(s *Source) { s.Topics = []string{".."} }, `topics: ".." is no topic name`},
		{func(s *Source) { s.Topics = []string{"a", "a"} }, `topics: "a" is named twice`},
		{func(s *Source) { s.Topics, s.Pattern = nil, "(" }, `pattern: "(" is no regular expression`},
		{func(s *Source) { s.Stop = Earliest() }, "stop: earliest would read nothing"},
		{func(s *Source) { s.Start = Timestamp(time.Unix(-5, 0)) }, "start: timestamp"},
		{func(s *Source) { s.Start = Offsets(nil) }, "start: offsets is empty"},
		{func(s *Source) { s.Start = at("payments", 0) }, `start: offsets name topic "payments"`},
		{func(s *Source) { s.Stop = at("orders", -1) }, "neither may be negative"},
		{func(s *Source) { s.Isolation = 9 }, "isolation: 9"},
		{func(s *Source) { s.DiscoveryInterval = time.Millisecond }, "discovery_interval: 1ms"},
		{func(s *Source) { s.DiscoveryInterval = -time.Hour }, "discovery_interval: -1h0m0s"},
		{func(s *Source) { s.RecordsPerSecond = -1 }, "records_per_second: -1"},
		{func(s *Source) { s.FetchMaxWait = time.Minute }, "fetch_max_wait: 1m0s"},
		{func(s *Source) { s.DialTimeout = time.Hour }, "dial_timeout: 1h0m0s"},
		{func(s *Source) { s.FetchMaxBytes = 1 << 29 }, "fetch_max_bytes: 536870912"},
		{func(s *Source) { s.FetchMaxPartitionBytes = 32 << 20 }, "fetch_max_partition_bytes: 33554432"},
		{func(s *Source) { s.MaxDecompressBatchBytes = 1 }, "max_decompress_batch_bytes: 1"},
		{func(s *Source) { s.BrokerMaxReadBytes = 5 }, "broker_max_read_bytes: 5"},
	} {
		s := valid()
		test.change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("error %v, want one that says %q", err, test.says)
		}
	}
}

func TestValidateReportsAllProblemsTogether(t *testing.T) {
	t.Parallel()
	s := Source{Brokers: []string{"x"}, Stop: Earliest(), FetchMaxWait: time.Hour, Isolation: 7}
	says(t, s.Validate(), nil, "brokers:", "topics:", "stop:", "fetch_max_wait:", "isolation:")
}

func TestDiscoveryCanBeOff(t *testing.T) {
	t.Parallel()
	s := valid()
	s.DiscoveryInterval = DiscoveryOff
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestAWrongConfigurationMakesNoReaderAndNoEnumerator(t *testing.T) {
	t.Parallel()
	s := &Source{}
	if _, err := s.NewReader(newLent()); err == nil {
		t.Error("a reader was made")
	}
	if _, err := s.NewEnumerator(nil, nil); err == nil {
		t.Error("an enumerator was made")
	}
}

func TestPositionsDescribeThemselvesInAStableOrder(t *testing.T) {
	t.Parallel()
	offsets := map[string]map[int32]int64{"b": {2: 5, 0: 1}, "a": {1: 3}}
	p := Offsets(offsets)
	offsets["a"][1] = 99 // the position keeps its own copy
	for want, p := range map[string]Position{
		"unset":    {},
		"earliest": Earliest(),
		"latest":   Latest(),
		"timestamp 2026-01-02T03:04:05.000000006Z": Timestamp(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)),
		"offsets a/1:3,b/0:1,b/2:5":                p,
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheCapabilityFitsTheManagedLane(t *testing.T) {
	t.Parallel()
	s := valid()
	if err := s.Capability().Managed(); err != nil {
		t.Fatal(err)
	}
}
