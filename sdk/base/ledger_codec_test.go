package base

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

var update = flag.Bool("update", false, "write golden files of the newest version anew")

var goldenIdentity = []sdk.Attribute{{Name: "topics", Value: "orders"}, {Name: "stop", Value: ""}}

// goldenLedgers are states of every kind. Their encodings are golden files that every later build must read.
func goldenLedgers() map[string]*ledger[at] {
	empty := newLedger[at](2)
	full := newLedger[at](2)
	full.firstDone = true
	for i, p := range []phase{assigned, waiting, gated, finished, assigned, finished} {
		e := full.learn(sdk.SplitID(fmt.Sprintf("orders-%d", i+8)))
		e.split = at{string(e.id), int64(i) * 1_000_000}
		full.enter(e, p, nobody)
		e.removed = i > 3
	}
	return map[string]*ledger[at]{"v1-empty.bin": empty, "v1-full.bin": full}
}

func TestStateGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, l := range goldenLedgers() {
		path := filepath.Join("..", "..", "testdata", "enumerator", name)
		state, err := encodeState(l, goldenIdentity, atCodec{})
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, state.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(golden, state.Data) {
			t.Errorf("%s: version 1 is published, its encoding must not change:\n got %q\nwant %q", name, state.Data, golden)
		}
		restored, identity, err := decodeState(sdk.VersionedBytes{Version: 1, Data: golden}, 2, atCodec{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := checkIdentity(identity, goldenIdentity, nil); err != nil {
			t.Error(err)
		}
		sameLedger(t, restored, l)
	}
}

// sameLedger compares what is stored; a gated split comes back as one that waits.
func sameLedger(t *testing.T, got, want *ledger[at]) {
	t.Helper()
	if got.firstDone != want.firstDone || len(got.entries) != len(want.entries) {
		t.Fatalf("restored firstDone %t and %d splits, want %t and %d", got.firstDone, len(got.entries), want.firstDone, len(want.entries))
	}
	for id, w := range want.entries {
		g := got.entries[id]
		phase := w.phase
		if phase == gated {
			phase = waiting
		}
		if g == nil || g.phase != phase || g.split != w.split || g.removed != w.removed || g.owner != nobody {
			t.Errorf("split %s restored as %+v, want %+v", id, g, w)
		}
	}
}

func TestStateOfAnUnknownVersionIsNamed(t *testing.T) {
	t.Parallel()
	_, _, err := decodeState(sdk.VersionedBytes{Version: 2}, 1, atCodec{})
	unknown, ok := errors.AsType[*sdk.UnknownVersionError](err)
	if !ok || unknown.Got != 2 || unknown.Max != 1 {
		t.Errorf("error %v, want an UnknownVersionError from 2 to 1", err)
	}
}

// Every cut, every appended byte and most flipped bits are found; none is fatal.
func TestDamagedStateIsCorrupt(t *testing.T) {
	t.Parallel()
	state, err := encodeState(goldenLedgers()["v1-full.bin"], goldenIdentity, atCodec{})
	if err != nil {
		t.Fatal(err)
	}
	decode := func(data []byte) error {
		_, _, err := decodeState(sdk.VersionedBytes{Version: 1, Data: data}, 1, atCodec{})
		return err
	}
	for n := range state.Data {
		if err := decode(state.Data[:n]); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("cut after %d bytes: %v, want ErrCorrupt", n, err)
		}
	}
	if err := decode(append(bytes.Clone(state.Data), 0)); !errors.Is(err, sdk.ErrCorrupt) {
		t.Errorf("one byte more: %v, want ErrCorrupt", err)
	}
}

// What decodes encodes to the same bytes, so nothing can be read in two ways.
func FuzzDecodeState(f *testing.F) {
	for _, l := range goldenLedgers() {
		state, err := encodeState(l, goldenIdentity, atCodec{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(state.Data)
	}
	f.Add([]byte{1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		l, identity, err := decodeState(sdk.VersionedBytes{Version: 1, Data: data}, 1, atCodec{})
		if err != nil {
			return
		}
		again, err := encodeState(l, identity, atCodec{})
		if err != nil {
			t.Fatal(err)
		}
		restored, _, err := decodeState(again, 1, atCodec{})
		if err != nil {
			t.Fatalf("own encoding: %v", err)
		}
		sameLedger(t, restored, l)
	})
}

// manySplits is a job with 100,000 splits, one in a hundred of which waits.
func manySplits() *ledger[at] {
	l := newLedger[at](512)
	l.firstDone = true
	for i := range 100_000 {
		e := l.learn(sdk.SplitID(fmt.Sprintf("orders-%06d", i)))
		e.split = at{string(e.id), rand.Int64()}
		to := assigned
		if i%100 == 0 {
			to = waiting
		}
		l.enter(e, to, nobody)
	}
	return l
}

func BenchmarkEncodeState100000(b *testing.B) {
	l := manySplits()
	b.ReportAllocs()
	for b.Loop() {
		state, err := encodeState(l, goldenIdentity, atCodec{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(state.Data))/100_000, "B/split")
	}
}

func BenchmarkDecodeState100000(b *testing.B) {
	state, err := encodeState(manySplits(), goldenIdentity, atCodec{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decodeState(state, 512, atCodec{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlan100000(b *testing.B) {
	readers := make([]sdk.ReaderID, 512)
	for i := range readers {
		readers[i] = sdk.ReaderID(i)
	}
	l := newLedger[at](len(readers))
	splits := make([]at, 100_000)
	for i := range splits {
		splits[i] = at{fmt.Sprintf("orders-%06d", i), 0}
	}
	if _, _, err := l.discovered(splits, false); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := l.plan(LeastLoaded[at], readers); err != nil {
			b.Fatal(err)
		}
	}
}
