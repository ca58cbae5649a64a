package protocol

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// addGolden seeds a fuzz target with the golden files whose name begins with the prefix.
func addGolden(f *testing.F, prefix string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(goldenDir, prefix+"*.bin"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden file for %s: %v", prefix, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// fuzzFrame checks the decoder of a frame kind on arbitrary bodies, under a header that fits them, and on arbitrary bytes.
func fuzzFrame[T any](f *testing.F, prefix string, kind frameKind, encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) {
	addGolden(f, prefix)
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrip(t, b, encode, decode)
		if len(b) < frameHeader {
			return
		}
		framed := bytes.Clone(b)
		copy(framed, frameMagic)
		framed[4], framed[5] = byte(kind), 0
		n := len(b) - frameHeader
		framed[8], framed[9], framed[10], framed[11] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
		roundTrip(t, reseal(framed, 1), encode, decode)
	})
}

// roundTrip: what decodes can be encoded, and that is a fixed point; what does not is corrupt or newer, and nothing panics.
func roundTrip[T any](t *testing.T, b []byte, encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) {
	t.Helper()
	v, err := decode(b)
	if err != nil {
		if _, newer := errors.AsType[*sdk.UnknownVersionError](err); !newer && !errors.Is(err, sdk.ErrCorrupt) {
			t.Fatalf("neither corrupt nor newer: %v", err)
		}
		return
	}
	first, err := encode(v)
	if err != nil {
		t.Fatalf("decoded and cannot be encoded: %v", err)
	}
	again, err := decode(first)
	if err != nil {
		t.Fatalf("encoded and cannot be decoded: %v", err)
	}
	second, err := encode(again)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("encoding is no fixed point: %v\n%x\n%x", err, first, second)
	}
}

func FuzzDecodeEnvelope(f *testing.F) {
	fuzzFrame(f, "v1-envelope", envelopeFrame, (*Envelope).Encode, DecodeEnvelope)
}

func FuzzDecodeAck(f *testing.F) {
	fuzzFrame(f, "v1-ack", ackFrame, (*Ack).Encode, DecodeAck)
}

func FuzzDecodeMetadata(f *testing.F) {
	fuzzFrame(f, "v1-metadata", metadataFrame, (*Metadata).Encode, DecodeMetadata)
}

func FuzzDecodeManifest(f *testing.F) {
	fuzzFrame(f, "v1-manifest", manifestFrame, (*Manifest).Encode, DecodeManifest)
}

func FuzzDecodeCounters(f *testing.F) {
	fuzzFrame(f, "v1-counters", countersFrame, (*Counters).Encode, DecodeCounters)
}

// FuzzDecodePayload gives each input to every payload decoder.
func FuzzDecodePayload(f *testing.F) {
	addGolden(f, "v1-payload")
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range samples() {
			if !strings.Contains(s.file, "payload") {
				continue
			}
			roundTrip(t, b, func(v *any) ([]byte, error) {
				_, data, err := EncodePayload((*v).(Payload))
				return data, err
			}, func(b []byte) (*any, error) {
				v, err := s.decode(b)
				return &v, err
			})
		}
	})
}
