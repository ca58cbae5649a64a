package cursor

import (
	"errors"
	"os"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// What version 1 wrote is still here, and reads as it was meant. The suite checks that the file of each version decodes; what it decodes to is
// known only here.
func TestAnOldSplitIsReadAsItWasMeant(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/split-v1.bin")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Codec{}.Decode(1, data)
	want := Split{Stream: "1", Place: Place{Cursor: cursorOf("1", 14), Done: 3}}
	if err != nil || got != want {
		t.Errorf("version 1 decodes to %+v, error %v, want %+v", got, err, want)
	}
}

// A job that was stopped under version 1 goes on where it was.
func TestAJobOfVersion1GoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.add("1", 20)
		old, err := os.ReadFile("testdata/split-v1.bin")
		if err != nil {
			t.Fatal(err)
		}
		split, err := Codec{}.Decode(1, old)
		if err != nil {
			t.Fatal(err)
		}
		f := w.fetcher(split)
		w.want(f, "1", 18, 20) // 14 events before the cursor, and 3 behind it, were read
	})
}

func TestWhatNoSplitCanBeIsRefused(t *testing.T) {
	t.Parallel()
	for version, texts := range map[int][]string{
		1: {`{}`, `{"stream":"","cursor":"c","done":0}`, `{"stream":"a","cursor":"c","done":-1}`, `{"stream":"a","cursor":"c","done":1,"last":"x"}`},
		2: {`{"stream":"a","cursor":"c","done":1001,"last":"x"}`, `{"stream":"a","cursor":"c","done":0,"last":"x"}`, `{"stream":"a"}x`},
	} {
		for _, text := range texts {
			if s, err := (Codec{}).Decode(version, []byte(text)); !errors.Is(err, sdk.ErrCorrupt) {
				t.Errorf("version %d: %s decodes to %+v, error %v", version, text, s, err)
			}
		}
	}
	if data, err := (Codec{}).Encode(Split{Stream: "a", Place: Place{Done: -1}}); err == nil {
		t.Errorf("a split that cannot be decoded was encoded: %s", data)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(1, []byte(`{"stream":"1","cursor":"MToxNA","done":3}`))
	f.Add(2, []byte(`{"stream":"1","cursor":"MToxNA","done":3,"last":"17"}`))
	f.Fuzz(func(t *testing.T, version int, data []byte) {
		split, err := Codec{}.Decode(version, data)
		if err != nil {
			return
		}
		again, err := Codec{}.Encode(split)
		if err != nil {
			t.Fatalf("%q decodes to %+v, which does not encode: %v", data, split, err)
		}
		if back, err := (Codec{}).Decode(codecVersion, again); err != nil || back != split {
			t.Errorf("%+v is %+v after a round trip, error %v", split, back, err)
		}
	})
}
