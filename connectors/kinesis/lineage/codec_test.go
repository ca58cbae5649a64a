package lineage

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

var update = flag.Bool("update", false, "write golden files anew; only for a version that was never released")

// golden holds the bytes that version 1 wrote. They must be readable for ever.
const golden = "../../../testdata/enumerator/kinesis-v1.bin"

// goldenTopology has a shard in every state, with every kind of position.
func goldenTopology(t testing.TB) *Topology {
	t.Helper()
	top := New(Config{Parallelism: 2, Misses: 1, Identity: []sdk.Attribute{{Name: "stream", Value: "orders"}}})
	top.SetStop(1_700_000_100_000)
	starts := map[string]Position{
		shardName(1): FromTrimHorizon(), shardName(2): {Kind: AtTimestamp, Millis: 1_700_000_000_123, Sub: Whole},
		shardName(3): At("49590338271490256608559692538361571095921575989136588898"), shardName(4): After("1"), shardName(5): AfterPart("17", 3),
		shardName(6): FromTrimHorizon(),
	}
	var scan Scan
	scan.Created = 1_690_000_000_000
	for i := 1; i <= 7; i++ {
		s := Shard{ID: shardName(i), Closed: i == 6 || i == 7, Hashes: HashRange{Known: true, End: [16]byte{0xff, 15: byte(i)}}}
		if i == 1 {
			s.Parents = []string{"shardId-outside"}
		}
		if i == 3 {
			s.Parents = []string{shardName(6), shardName(7)}
			s.Hashes = HashRange{}
		}
		scan.Shards = append(scan.Shards, s)
	}
	if _, err := top.Apply(top.Begin(), scan, func(s Shard) Initial {
		return Initial{Position: starts[s.ID], Skip: s.ID == shardName(7)}
	}); err != nil {
		t.Fatal(err)
	}
	top.Open()
	for i, id := range []string{shardName(4), shardName(6)} {
		if err := top.Assigned(id, sdk.ReaderID(i)); err != nil {
			t.Fatal(err)
		}
	}
	top.Ended(shardName(6), []string{"shardId-hinted"})
	at := AfterPart("17", 3)
	at.Millis = 1_700_000_000_000
	top.Returned(shardName(5), at, HashRange{})
	return top
}

func shardName(i int) string { return fmt.Sprintf("shardId-%012d", i) }

// E52: golden files of the first version.
func TestVersion1IsReadAndWrittenByteForByte(t *testing.T) {
	t.Parallel()
	top := goldenTopology(t)
	now := top.Encode()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, now.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(old, now.Data) || now.Version != 1 {
		t.Errorf("version 1 changed:\nwas %s\nis  %s", hex.EncodeToString(old), hex.EncodeToString(now.Data))
	}
	again, err := Decode(sdk.VersionedBytes{Version: 1, Data: old}, top.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(again.Nodes()), fmt.Sprint(top.Nodes()); got != want {
		t.Errorf("read\n%s\nwant\n%s", got, want)
	}
	if again.Created() != top.Created() || again.Stop() != top.Stop() || !again.FirstDone() {
		t.Errorf("created %d, stop %d, first done %t", again.Created(), again.Stop(), again.FirstDone())
	}
}

// E52: also a version that is not known.
func TestDecodeRefusesWhatEncodeNeverWrites(t *testing.T) {
	t.Parallel()
	top := goldenTopology(t)
	good := top.Encode().Data
	for n := range good {
		if _, err := Decode(sdk.VersionedBytes{Version: 1, Data: good[:n]}, top.cfg); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("cut at %d: error %v", n, err)
		}
	}
	if _, err := Decode(sdk.VersionedBytes{Version: 1, Data: append(bytes.Clone(good), 0)}, top.cfg); !errors.Is(err, sdk.ErrCorrupt) {
		t.Errorf("a byte left over: error %v", err)
	}
	var unknown *sdk.UnknownVersionError
	if _, err := Decode(sdk.VersionedBytes{Version: 2, Data: good}, top.cfg); !errors.As(err, &unknown) || unknown.Got != 2 {
		t.Errorf("version 2: error %v", err)
	}
	other := top.cfg
	other.Identity = []sdk.Attribute{{Name: "stream", Value: "payments"}}
	if _, err := Decode(sdk.VersionedBytes{Version: 1, Data: good}, other); !errors.Is(err, sdk.ErrIncompatibleState) {
		t.Errorf("another stream: error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	top := goldenTopology(f)
	f.Add(top.Encode().Data)
	f.Add(New(top.cfg).Encode().Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Decode(sdk.VersionedBytes{Version: 1, Data: data}, Config{Parallelism: 2})
		if err != nil {
			if !errors.Is(err, sdk.ErrCorrupt) && !errors.Is(err, sdk.ErrIncompatibleState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		got.Ready()
		got.Nodes()
		_ = got.Problem()
	})
}

// TestTenThousandShardsAreNotQuadratic reshards a stream of ten thousand shards shard by shard. Quadratic work would take minutes.
func TestTenThousandShardsAreNotQuadratic(t *testing.T) {
	t.Parallel()
	const n = 10_000
	top := New(Config{Parallelism: 4})
	var scan Scan
	for i := range n {
		scan.Shards = append(scan.Shards, Shard{ID: shardName(i), Closed: true})
		scan.Shards = append(scan.Shards, Shard{ID: shardName(n + i), Parents: []string{shardName(i)}})
	}
	began := time.Now()
	if _, err := top.Apply(top.Begin(), scan, func(Shard) Initial { return Initial{Position: FromTrimHorizon()} }); err != nil {
		t.Fatal(err)
	}
	top.Open()
	for _, ready := range top.Ready() {
		if err := top.Assigned(ready.ID, 0); err != nil {
			t.Fatal(err)
		}
		top.Ended(ready.ID, nil)
		top.Finished(ready.ID, AtEnd, nil)
	}
	if got := len(top.Ready()); got != n {
		t.Fatalf("%d children are ready, want %d", got, n)
	}
	again, err := Decode(top.Encode(), top.cfg)
	if err != nil || len(again.Ready()) != n {
		t.Fatalf("%d ready after a restart, error %v", len(again.Ready()), err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

// E21: numbers of any length, also the one that an emulator gives to the end of every shard.
func TestSequencesAreComparedAsLargeNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"9", "10", -1},
		{"9223372036854775807", "49590338271490256608559692538361571095921575989136588898", -1},
		{"49590338271490256608559692538361571095921575989136588898", "49590338271490256608559692538361571095921575989136588899", -1},
		{"007", "7", 0},
		{"", "1", -1},
		{"20", "3", 1},
	} {
		if got := CompareSequences(c.a, c.b); got != c.want {
			t.Errorf("%s and %s compare as %d, want %d", c.a, c.b, got, c.want)
		}
		if got := CompareSequences(c.b, c.a); got != -c.want {
			t.Errorf("%s and %s compare as %d, want %d", c.b, c.a, got, -c.want)
		}
	}
}
