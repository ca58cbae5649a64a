package protocol

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// goldenDir holds encoded values of every published version.
const goldenDir = "../../testdata/wire"

var newGolden = flag.Bool("new-golden", false, "write golden files that do not exist yet; existing ones are never overwritten")

// sample is one value with its two directions.
type sample struct {
	file   string
	value  any
	encode func() ([]byte, error)
	decode func([]byte) (any, error)
}

func framed[T any](file string, v *T, encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) sample {
	return sample{
		file: file, value: v,
		encode: func() ([]byte, error) { return encode(v) },
		decode: func(b []byte) (any, error) { return decode(b) },
	}
}

func payload[P Payload](file string, p P, decode func(uint32, []byte) (P, error)) sample {
	return sample{
		file: file, value: p,
		encode: func() ([]byte, error) {
			_, data, err := EncodePayload(p)
			return data, err
		},
		decode: func(b []byte) (any, error) { return decode(PayloadVersion, b) },
	}
}

func sampleSplits() []Split {
	return []Split{
		{ID: "orders-0", Data: sdk.VersionedBytes{Version: 1, Data: []byte(`{"topic":"orders","partition":0,"next":17}`)}},
		{ID: "orders-1", Data: sdk.VersionedBytes{Version: 2, Data: []byte{0, 1, 0xff}}},
		{ID: "\xff\xfe not text", Data: sdk.VersionedBytes{Version: 1}},
	}
}

func sampleMetadata(attempts ...Attempt) Metadata {
	return Metadata{
		MetadataVersion: 1, CommandProtocolVersion: 1, ManagedLaneVersion: 1, Lineage: attempts,
		Watermarks: []Watermark{
			{Epoch: 3, Applied: 40},
			{Epoch: 4, Applied: 300, Gaps: []Sequence{2, 7, 299}},
		},
		NoMoreSplitsGeneration: 2,
		CapabilityDigest:       "6b1f0e1c9d0b4f7c8a5e3d2c1b0a99887766554433221100ffeeddccbbaa9988",
	}
}

func sampleManifest() *Manifest {
	splits := sampleSplits()
	return &Manifest{
		Job: "orders", ID: 42, Kind: Savepoint,
		Triggered:   time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC),
		Completed:   time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		Parallelism: 2, Exchange: "forward", Lane: LaneA, Connector: "kafka", ConnectorVersion: "1.2.0",
		CapabilityDigest: sampleMetadata().CapabilityDigest, Sink: "file", LastAttempt: 9, Records: 123456,
		Coordinator: CoordinatorState{
			Epoch: 4, Enumerator: sdk.VersionedBytes{Version: 1, Data: []byte(`{"topics":["orders"]}`)}, Generation: 2,
			Tracker: []Assignment{
				{Reader: 1, Target: 8, Epoch: 4, Sequence: 301, Splits: splits[1:2]},
				{Reader: 0, Target: 7, Epoch: 4, Sequence: 12},
			},
		},
		Readers: []ReaderState{
			{Reader: 0, Splits: splits[:1], Metadata: sampleMetadata(7)},
			{Reader: 1, Finished: splits[2:], Ended: true, Metadata: sampleMetadata(6, 8)},
		},
		Sinks: []SinkState{
			{Task: 0, Prepared: []Prepared{{Checkpoint: 41, Data: []byte("part-41")}, {Checkpoint: 42, Data: []byte("part-42")}}},
			{Task: 1},
		},
	}
}

func sampleEnvelope() *Envelope {
	e, err := NewEnvelope(Header{
		Job: "orders", SourceRuntime: "kafka", Epoch: 4, Sender: 5, Target: 8, Sequence: 301, Command: 1234567890123, Kind: AddSplits,
	}, AddSplitsPayload{Splits: sampleSplits()})
	if err != nil {
		panic(err)
	}
	return e
}

func samples() []sample {
	metadata := sampleMetadata(6, 8)
	return []sample{
		framed("v1-envelope.bin", sampleEnvelope(), (*Envelope).Encode, DecodeEnvelope),
		framed("v1-ack-accepted.bin", &Ack{Status: Accepted, Target: 8, MailboxSequence: 77}, (*Ack).Encode, DecodeAck),
		framed("v1-ack-retry.bin", &Ack{Status: RetryLater, Target: 8, RetryAfter: 10 * time.Millisecond, Reason: ReasonMailboxBytes}, (*Ack).Encode, DecodeAck),
		framed("v1-metadata.bin", &metadata, (*Metadata).Encode, DecodeMetadata),
		framed("v1-manifest.bin", sampleManifest(), (*Manifest).Encode, DecodeManifest),
		framed("v1-counters.bin", &Counters{Job: "orders", NextAttempt: 300, NextCheckpoint: 43}, (*Counters).Encode, DecodeCounters),
		payload("v1-payload-add-splits.bin", AddSplitsPayload{Splits: sampleSplits()}, DecodeAddSplits),
		payload("v1-payload-no-more-splits.bin", NoMoreSplitsPayload{Generation: 3}, DecodeNoMoreSplits),
		payload("v1-payload-source-event.bin", SourceEventPayload{sdk.Event{Kind: "rewind", Data: sdk.VersionedBytes{Version: 2, Data: []byte("x")}}}, DecodeSourceEvent),
		payload("v1-payload-register.bin", RegisterPayload{}, DecodeRegister),
		payload("v1-payload-barrier.bin", BarrierPayload{Checkpoint: 42, Kind: Stop}, DecodeBarrier),
		payload("v1-payload-checkpoint.bin", CheckpointPayload{Checkpoint: 42}, DecodeCheckpoint),
		payload("v1-payload-graceful-close.bin", GracefulClosePayload{}, DecodeGracefulClose),
		payload("v1-payload-schema-change.bin", SchemaChangePayload{Checkpoint: 42, Request: 7}, DecodeSchemaChange),
		payload("v1-payload-pause-or-resume.bin", PauseOrResumePayload{Pause: []sdk.SplitID{"a", "b"}, Resume: []sdk.SplitID{"c"}}, DecodePauseOrResume),
	}
}

// TestGoldenFiles reads every published encoding for ever and holds the encoder to the same bytes. When it fails, the code is
// wrong and not the file: a changed format needs a new version and new files beside the old ones.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, s := range samples() {
		known[s.file] = true
		path := filepath.Join(goldenDir, s.file)
		encoded, err := s.encode()
		if err != nil {
			t.Fatalf("%s: %v", s.file, err)
		}
		golden, err := os.ReadFile(path)
		if os.IsNotExist(err) && *newGolden {
			golden, err = encoded, os.WriteFile(path, encoded, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded, golden) {
			t.Errorf("%s: encoded to\n%x\nthe file has\n%x", s.file, encoded, golden)
		}
		decoded, err := s.decode(golden)
		if err != nil {
			t.Errorf("%s: %v", s.file, err)
			continue
		}
		if !reflect.DeepEqual(decoded, s.value) {
			t.Errorf("%s: decoded to\n%+v\nwant\n%+v", s.file, decoded, s.value)
		}
	}
	files, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("no test reads %s", f.Name())
		}
	}
}
