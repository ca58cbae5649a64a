package kinesis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

func TestAProbeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*Source)
		fault    *kinesistest.Fault
		sentinel error
		option   string
		words    string
	}{
		"a stream that does not exist": {change: func(s *Source) { s.Stream = "oders" }, sentinel: ErrStreamMissing, option: "stream", words: "there are orders"},
		"access denied":                {fault: &kinesistest.Fault{Operation: "DescribeStreamSummary", Effect: kinesistest.Fail("AccessDeniedException", "not authorized")}, sentinel: ErrAccess, option: "credentials", words: "kinesis:DescribeStreamSummary"},
		"reading denied":               {fault: &kinesistest.Fault{Operation: "GetShardIterator", Effect: kinesistest.Fail("AccessDeniedException", "not authorized")}, sentinel: ErrAccess, option: "credentials", words: "kinesis:GetShardIterator"},
		"credentials refused":          {fault: &kinesistest.Fault{Operation: "DescribeStreamSummary", Effect: kinesistest.Fail("UnrecognizedClientException", "the token is invalid")}, sentinel: ErrCredentials, option: "credentials", words: "does not accept"},
		"a connection that breaks":     {fault: &kinesistest.Fault{Operation: "DescribeStreamSummary", Effect: kinesistest.Reset()}, sentinel: ErrUnreachable, option: "endpoint", words: "nobody answered"},
		"a service that hangs":         {fault: &kinesistest.Fault{Operation: "DescribeStreamSummary", Effect: kinesistest.Hang()}, sentinel: ErrUnreachable, option: "endpoint", words: "nobody answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, 1, c.change, func(w *world) {
				if c.fault != nil {
					w.srv.Inject(*c.fault)
				}
				began := time.Now()
				err := w.source.Probe(w.t.Context())
				service, ok := errors.AsType[*ServiceError](err)
				if !errors.Is(err, c.sentinel) || !ok || service.Option != c.option || !strings.Contains(err.Error(), c.words) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

func TestAProbeOfWhatWorksSaysNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, nil, func(w *world) {
		if err := w.source.Probe(w.t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestValidateNamesEveryProblem(t *testing.T) {
	t.Parallel()
	s := Source{
		Stream: "a b", StreamARN: "x", Endpoint: "nowhere", Start: Sequences(map[string]string{"s": "x"}), Stop: TrimHorizon(), LatestBy: "luck", OnLost: "cry",
		Consumer: "a b", FilterHashKeys: true, DiscoveryInterval: 1, PollInterval: 1, RequestTimeout: 1, ScanTimeout: 1, MaxRecords: 20_000, Concurrency: 1000,
		InFlightBytes: 1, RecordsPerSecond: -1, Credentials: Credentials{AccessKeyID: "a", Profile: "p", ExternalID: "e"},
	}
	err := s.Validate()
	for _, field := range []string{
		"stream_arn", "endpoint", "start", "stop", "latest_by", "on_lost", "consumer", "filter_hash_keys", "discovery_interval", "poll_interval",
		"request_timeout", "scan_timeout", "max_records", "concurrency", "in_flight_bytes", "records_per_second", "credentials: access_key_id", "credentials: profile", "credentials: external_id",
	} {
		if err == nil || !strings.Contains(err.Error(), field+":") && !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
	if err := (&Source{}).Validate(); err == nil || !strings.Contains(err.Error(), "stream: none given") {
		t.Errorf("error %v", err)
	}
	if err := (&Source{StreamARN: "arn:aws:kinesis:eu-west-1:123456789012:stream/orders", Stop: Latest()}).Validate(); err != nil {
		t.Error(err)
	}
}
