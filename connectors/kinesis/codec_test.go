package kinesis

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

var update = flag.Bool("update", false, "write golden files anew; only for a version that was never released")

// golden holds the bytes that version 1 wrote. They must be readable for ever.
const golden = "../../testdata/splits/kinesis-v1.bin"

// goldenSplits are the splits in the golden file, each behind its length in one byte.
func goldenSplits() []Split {
	at := lineage.AfterPart("49590338271490256608559692538361571095921575989136588898", 3)
	at.Millis = 1_700_000_000_123
	return []Split{
		{Shard: "shardId-000000000000", Created: 1_690_000_000_000, Position: at, Stop: 1_700_000_100_000, Hashes: lineage.HashRange{Known: true, End: [16]byte{0x7f, 15: 0xff}}},
		{Shard: "s", Position: lineage.FromTrimHorizon()},
		{Shard: "shardId-000000000001", Position: lineage.Position{Kind: lineage.AtTimestamp, Millis: 1, Sub: lineage.Whole}},
		{Shard: "shardId-000000000002", Position: lineage.At("0")},
		{Shard: "shardId-000000000003", Position: lineage.After("17"), End: &End{How: lineage.AtEnd, Children: []string{"shardId-000000000004", "shardId-000000000005"}}},
		{Shard: "shardId-000000000006", Position: lineage.After("18"), End: &End{How: lineage.AsLost}},
	}
}

// E52: golden files of the first version.
func TestVersion1IsReadAndWrittenByteForByte(t *testing.T) {
	t.Parallel()
	var now bytes.Buffer
	for _, s := range goldenSplits() {
		data, err := Codec{}.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		now.WriteByte(byte(len(data)))
		now.Write(data)
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(old, now.Bytes()) {
		t.Errorf("version 1 changed:\nwas %s\nis  %s", hex.EncodeToString(old), hex.EncodeToString(now.Bytes()))
	}
	for i, want := range goldenSplits() {
		n := int(old[0])
		got, err := Codec{}.Decode(1, old[1:1+n])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("split %d: %+v, error %v; want %+v", i, got, err, want)
		}
		old = old[1+n:]
	}
}

// E52: also a version that is not known.
func TestDecodeRefusesWhatEncodeNeverWrites(t *testing.T) {
	t.Parallel()
	for _, s := range goldenSplits() {
		good, err := Codec{}.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		for n := range good {
			if _, err := (Codec{}).Decode(1, good[:n]); !errors.Is(err, sdk.ErrCorrupt) {
				t.Errorf("%s cut at %d: error %v", s.Shard, n, err)
			}
		}
		if _, err := (Codec{}).Decode(1, append(bytes.Clone(good), 0)); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%s and a byte: error %v", s.Shard, err)
		}
		var unknown *sdk.UnknownVersionError
		if _, err := (Codec{}).Decode(2, good); !errors.As(err, &unknown) || unknown.Got != 2 {
			t.Errorf("version 2: error %v", err)
		}
	}
	for _, s := range []Split{{}, {Shard: "s"}, {Shard: "s", Position: lineage.At("x")}, {Shard: "s", Position: lineage.FromTrimHorizon(), Created: -1}} {
		if data, err := (Codec{}).Encode(s); err == nil {
			t.Errorf("%+v became %x", s, data)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range goldenSplits() {
		data, err := Codec{}.Encode(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Codec{}.Decode(1, data)
		if err != nil {
			if !errors.Is(err, sdk.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		s.Describe()
		again, err := Codec{}.Encode(s)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x was read and is written as %x, error %v", data, again, err)
		}
	})
}
