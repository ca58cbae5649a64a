package sdk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

type position struct{ At int }

func TestJSONCodecRefusesWhatItDidNotWrite(t *testing.T) {
	t.Parallel()
	c := sdk.JSONCodec[position]{Current: 2}
	b, err := c.Encode(position{7})
	if err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= 2; version++ {
		if got, err := c.Decode(version, b); err != nil || got.At != 7 {
			t.Errorf("version %d: %v, %v", version, got, err)
		}
	}
	if _, err := c.Decode(3, b); !isUnknown(err) {
		t.Errorf("version 3: %v", err)
	}
	if _, err := c.Decode(0, b); !isUnknown(err) {
		t.Errorf("version 0: %v", err)
	}
	for name, bad := range map[string]string{
		"truncated": string(b[:len(b)-1]), "trailing": string(b) + "1", "unknown field": `{"At":1,"Next":2}`, "empty": "",
	} {
		if _, err := c.Decode(2, []byte(bad)); !errors.Is(err, sdk.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func isUnknown(err error) bool {
	_, ok := errors.AsType[*sdk.UnknownVersionError](err)
	return ok
}

func FuzzJSONCodec(f *testing.F) {
	f.Add(1, []byte(`{"At":3}`))
	f.Add(9, []byte(`x`))
	f.Fuzz(func(t *testing.T, version int, data []byte) {
		v, err := sdk.JSONCodec[position]{Current: 1}.Decode(version, data)
		if err == nil {
			if _, err := (sdk.JSONCodec[position]{Current: 1}).Encode(v); err != nil {
				t.Error(err)
			}
		}
	})
}

func full() sdk.Capability {
	return sdk.Capability{Connector: "feed", Version: "1.4.2", BoundedPoll: true, Wakeup: true, AttemptFencing: true, AsyncEnumerator: true}
}

// The digest is stored in checkpoints: it must never change for the same capability.
func TestDigestIsStable(t *testing.T) {
	t.Parallel()
	const golden = "cee019e9c8bc9b53aca2cb7a22904fcd3d3d06e0be121261b7cfb3188ab29297"
	if got := full().Digest(); got != golden {
		t.Errorf("digest %s", got)
	}
}

func TestDigestTellsWhatACheckpointDependsOn(t *testing.T) {
	t.Parallel()
	same := full()
	same.Version, same.Protocol = "1.9.0", sdk.ProtocolVersion
	if same.Digest() != full().Digest() {
		t.Error("a minor version changes the digest")
	}
	for name, change := range map[string]func(*sdk.Capability){
		"connector": func(c *sdk.Capability) { c.Connector = "feeds" },
		"major":     func(c *sdk.Capability) { c.Version = "2.0.0" },
		"protocol":  func(c *sdk.Capability) { c.Protocol = 2 },
		"events":    func(c *sdk.Capability) { c.SourceEvents = true },
		"lineage":   func(c *sdk.Capability) { c.OrderedLineage = true },
		"ack":       func(c *sdk.Capability) { c.AckRequired = true },
		"wakeup":    func(c *sdk.Capability) { c.Wakeup = false },
	} {
		c := full()
		if change(&c); c.Digest() == full().Digest() {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestManagedNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if err := full().Managed(); err != nil {
		t.Error(err)
	}
	c := full()
	c.Wakeup, c.BoundedPoll = false, false
	if err := c.Managed(); !errors.Is(err, sdk.ErrNotManaged) || !strings.Contains(err.Error(), "BoundedPoll, Wakeup") {
		t.Errorf("got %v", err)
	}
	c = full()
	c.Protocol = 9
	if err := c.Managed(); !errors.Is(err, sdk.ErrNotManaged) {
		t.Errorf("got %v", err)
	}
}

func TestFatalKeepsTextAndCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("gone")
	err := sdk.Fatalf("topic: %w", cause)
	if !errors.Is(err, sdk.ErrFatal) || !errors.Is(err, cause) || err.Error() != "topic: gone" || sdk.Fatal(nil) != nil {
		t.Errorf("got %v", err)
	}
}

// numbers is a view whose odd elements are no records.
type numbers int

func (n numbers) Len() int                 { return int(n) }
func (n numbers) Bytes(from, to int) int64 { return int64(to - from) }
func (n numbers) Record(i int, into *sdk.Record) bool {
	*into = sdk.Record{Offset: int64(i)}
	return i%2 == 0
}

func TestBatchKeepsTheOrderOfRecordsAndViews(t *testing.T) {
	t.Parallel()
	var b sdk.Batch
	for range 2 {
		b.Append(&sdk.Record{Offset: 100, Value: []byte("abc")})
		b.Append(&sdk.Record{Offset: 101})
		b.AppendView(numbers(10), 3, 7)
		b.Append(&sdk.Record{Offset: 102})
		var got []int64
		for r := range b.All() {
			got = append(got, r.Offset)
		}
		want := []int64{100, 101, 4, 6, 102}
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		if b.Len() != 7 || b.Bytes() != 7 || b.Records() != 5 {
			t.Errorf("%d elements, %d bytes, %d records", b.Len(), b.Bytes(), b.Records())
		}
		b.Reset()
		if b.Len() != 0 || b.Bytes() != 0 {
			t.Error("a reset batch is not empty")
		}
	}
}
