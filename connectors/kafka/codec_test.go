package kafka

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

var update = flag.Bool("update", false, "write golden files anew; only for a version that was never released")

// golden holds the bytes that version 1 wrote. They must be readable for ever.
const golden = "../../testdata/splits/kafka-v1.bin"

// goldenSplits are the splits in the golden file, each behind its length in one byte.
func goldenSplits() []Split {
	id := [16]byte{0xca, 0xfe, 15: 0x01}
	return []Split{
		{Topic: "orders", TopicID: id, Partition: 3, Offset: 1_234_567, Epoch: 7, Start: 1000, Stop: NoStop},
		{Topic: "o", Epoch: NoEpoch, Stop: NoStop},
		{Topic: "orders.eu-1_x", TopicID: id, Partition: math.MaxInt32, Offset: math.MaxInt64, Epoch: math.MaxInt32, Start: math.MaxInt64, Stop: math.MaxInt64 - 1},
		{Topic: "bounded", Partition: 0, Offset: 17, Epoch: 0, Start: 17, Stop: 17},
	}
}

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
		if err != nil || got != want {
			t.Errorf("split %d: %+v, error %v; want %+v", i, got, err, want)
		}
		old = old[1+n:]
	}
}

func TestDecodeRefusesWhatEncodeNeverWrites(t *testing.T) {
	t.Parallel()
	good, err := Codec{}.Encode(goldenSplits()[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := (Codec{}).Decode(1, good[:n]); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("cut at %d: error %v", n, err)
		}
	}
	for name, data := range map[string][]byte{
		"bytes left over":  append(bytes.Clone(good), 0),
		"empty":            nil,
		"long varint":      append([]byte{0x86, 0x00}, good[1:]...),
		"illegal name":     bytes.Replace(good, []byte("orders"), []byte("or ers"), 1),
		"name too long":    append([]byte{0xfa, 0x01}, bytes.Repeat([]byte("x"), 300)...),
		"varint overflows": append(bytes.Clone(good[:23]), bytes.Repeat([]byte{0xff}, 11)...),
	} {
		if _, err := (Codec{}).Decode(1, data); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	var unknown *sdk.UnknownVersionError
	if _, err := (Codec{}).Decode(2, good); !errors.As(err, &unknown) || unknown.Got != 2 {
		t.Errorf("version 2: error %v", err)
	}
}

func TestEncodeRefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, s := range []Split{
		{},
		{Topic: "a/b", Stop: NoStop},
		{Topic: strings.Repeat("x", 250)},
		{Topic: "a", Partition: -1},
		{Topic: "a", Offset: -1},
		{Topic: "a", Epoch: -2},
		{Topic: "a", Start: -1},
		{Topic: "a", Stop: -2},
		{Topic: "a", Stop: math.MaxInt64},
	} {
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
		f.Add(1, data)
	}
	f.Fuzz(func(t *testing.T, version int, data []byte) {
		s, err := Codec{}.Decode(version, data)
		if err != nil {
			return
		}
		again, err := Codec{}.Encode(s)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x became %+v and then %x, error %v", data, s, again, err)
		}
	})
}

func TestSplitIDsAreUnique(t *testing.T) {
	t.Parallel()
	ids := make(map[sdk.SplitID]place)
	for _, p := range []place{{"a", 1}, {"a-1", 0}, {"a-1", 1}, {"a", 10}, {"a-1-0", 0}, {"a-1-0", 1}, {"a-", 1}} {
		if other, taken := ids[p.splitID()]; taken {
			t.Errorf("%v and %v share %q", p, other, p.splitID())
		}
		ids[p.splitID()] = p
	}
	long := Split{Topic: strings.Repeat("x", maxTopicName), Partition: math.MaxInt32}
	if len(long.SplitID()) > sdk.MaxSplitIDBytes {
		t.Errorf("an id of %d bytes", len(long.SplitID()))
	}
}

func TestSplitsDescribeThemselvesInPlainNumbers(t *testing.T) {
	t.Parallel()
	got := make(map[string]string)
	for _, a := range goldenSplits()[0].Describe() {
		got[a.Name] = a.Value
	}
	want := map[string]string{
		"topic": "orders", "partition": "3", "offset": "1234567", "start": "1000", "stop": "-", "leader epoch": "7",
		"topic id": "cafe0000000000000000000000000001",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %q, want %q", name, got[name], value)
		}
	}
	for _, a := range goldenSplits()[1].Describe() {
		if (a.Name == "leader epoch" || a.Name == "topic id") && a.Value != "-" {
			t.Errorf("unknown %s: %q", a.Name, a.Value)
		}
	}
}

func TestPositionAfterARecordIsASplitThatCodecReads(t *testing.T) {
	t.Parallel()
	s := &Source{Topics: []string{"orders"}}
	rec := &sdk.Record{Topic: "orders", Partition: 2, Offset: 41, Epoch: 3}
	position, err := s.PositionAfter(rec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.SplitCodec().Decode(position.Version, position.Data)
	if want := (Split{Topic: "orders", Partition: 2, Offset: 42, Epoch: 3, Start: 42, Stop: NoStop}); err != nil || got != want {
		t.Fatalf("%+v, error %v", got, err)
	}
	s.Stop = Latest()
	if _, err := s.PositionAfter(rec); err == nil {
		t.Error("a bounded source gave a position without its stop")
	}
}
