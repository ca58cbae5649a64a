package jsonl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/sdk"
)

var noon = time.Date(2026, 1, 2, 3, 4, 5, 6_789_000, time.UTC)

func ExampleEncoder() {
	var enc jsonl.Encoder
	line := enc.Append(nil, &sdk.Record{Topic: "orders", Partition: 3, Offset: 17, Time: noon, Key: []byte("k"), Value: []byte("v")})
	fmt.Print(string(line))
	// Output: {"topic":"orders","partition":3,"offset":17,"timestamp":"2026-01-02T03:04:05.006Z","key":"k","value":"v","headers":[]}
}

func TestLines(t *testing.T) {
	place := sdk.Record{Topic: "t", Partition: 1, Offset: 2}
	const head = `{"topic":"t","partition":1,"offset":2,`
	for _, c := range []struct {
		name string
		edit func(*sdk.Record)
		want string
	}{
		{"nulls", func(*sdk.Record) {}, head + `"timestamp":null,"key":null,"value":null,"headers":[]}`},
		{"empty is not null", func(r *sdk.Record) { r.Key, r.Value = []byte{}, []byte{} }, head + `"timestamp":null,"key":"","value":"","headers":[]}`},
		{"escapes", func(r *sdk.Record) { r.Value = []byte("a\"b\\c\n\r\t\x00\x1f\x7f<é\u2028") }, head + `"timestamp":null,"key":null,"value":"a\"b\\c\n\r\t\u0000\u001f` + "\x7f<é\u2028" + `","headers":[]}`},
		{"binary", func(r *sdk.Record) { r.Key, r.Value = []byte{0xff}, []byte{0xc3, 0x28} }, head + `"timestamp":null,"key":"/w==","key_encoding":"base64","value":"wyg=","value_encoding":"base64","headers":[]}`},
		{"headers", func(r *sdk.Record) {
			r.Headers = []sdk.Header{{Key: "h", Value: []byte("1")}, {Key: "h"}, {Key: "b", Value: []byte{0x80}}, {Key: "\xff", Value: []byte{}}}
		}, head + `"timestamp":null,"key":null,"value":null,"headers":[{"key":"h","value":"1"},{"key":"h","value":null},{"key":"b","value":"gA==","value_encoding":"base64"},{"key":"/w==","key_encoding":"base64","value":""}]}`},
		{"before the epoch", func(r *sdk.Record) { r.Time = time.UnixMilli(-1) }, head + `"timestamp":"1969-12-31T23:59:59.999Z","key":null,"value":null,"headers":[]}`},
		{"sequence", func(r *sdk.Record) { r.Sequence = "496\"" }, head + `"sequence":"496\"","timestamp":null,"key":null,"value":null,"headers":[]}`},
		{"zone", func(r *sdk.Record) { r.Time = noon.In(time.FixedZone("x", 3600)) }, head + `"timestamp":"2026-01-02T03:04:05.006Z","key":null,"value":null,"headers":[]}`},
		{"named part", func(r *sdk.Record) {
			*r = sdk.Record{Topic: "orders", Partition: -1, Split: "shardId-000000000003", Sequence: "495", Offset: 2, Time: noon, Value: []byte("v")}
		}, `{"stream":"orders","shard":"shardId-000000000003","sequence":"495","subsequence":2,"timestamp":"2026-01-02T03:04:05.006Z","key":null,"value":"v"}`},
		{"named part with headers", func(r *sdk.Record) {
			*r = sdk.Record{Topic: "orders", Partition: -1, Split: "s", Sequence: "495", Headers: []sdk.Header{{Key: "h"}}}
		}, `{"stream":"orders","shard":"s","sequence":"495","subsequence":0,"timestamp":null,"key":null,"value":null,"headers":[{"key":"h","value":null}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := place
			c.edit(&rec)
			var enc jsonl.Encoder
			got := string(enc.Append([]byte("x"), &rec))
			if got != "x"+c.want+"\n" {
				t.Errorf("got  %swant %s", got, c.want)
			}
			if !json.Valid([]byte(got[1:])) {
				t.Error("not JSON")
			}
		})
	}
}

// One encoder over records that change place and time must write what a fresh one writes.
func TestMemory(t *testing.T) {
	var shared jsonl.Encoder
	for i := range 200 {
		rec := sdk.Record{Topic: strings.Repeat("t", i%3), Partition: int32(i % 5), Offset: int64(i), Time: noon.Add(time.Duration(i/7) * 333 * time.Millisecond)}
		var fresh jsonl.Encoder
		if got, want := shared.Append(nil, &rec), fresh.Append(nil, &rec); !bytes.Equal(got, want) {
			t.Fatalf("record %d: %s, want %s", i, got, want)
		}
		named := sdk.Record{Topic: "t", Partition: -1, Split: sdk.SplitID(fmt.Sprint(i % 4)), Sequence: "1"}
		if got, want := shared.Append(nil, &named), new(jsonl.Encoder).Append(nil, &named); !bytes.Equal(got, want) {
			t.Fatalf("record %d: %s, want %s", i, got, want)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("t", int32(0), int64(0), int64(1), []byte("k"), []byte(`{"a":1}`), "h", []byte{0xff}, uint8(0))
	f.Add("\xff", int32(-1), int64(-1), int64(-1), []byte{0x80}, []byte("0123456\"89abcdef\\"), "\xfe", []byte("x"), uint8(7))
	f.Fuzz(func(t *testing.T, topic string, partition int32, offset, ms int64, key, value []byte, hk string, hv []byte, nulls uint8) {
		rec := sdk.Record{Topic: topic, Partition: partition, Offset: offset, Epoch: -1, Key: key, Value: value, Headers: []sdk.Header{{Key: hk, Value: hv}, {Key: hk, Value: value}}}
		rec.Time = time.UnixMilli(ms % (1 << 46)).UTC() // years 0 to 9999
		if rec.Time.Year() < 1 || rec.Time.Year() > 9999 {
			rec.Time = noon.Truncate(time.Millisecond)
		}
		if nulls&1 != 0 {
			rec.Key = nil
		}
		if nulls&2 != 0 {
			rec.Value = nil
		}
		if nulls&4 != 0 {
			rec.Headers = nil
		}
		var enc jsonl.Encoder
		line := enc.Append(nil, &rec)
		if bytes.IndexByte(line, '\n') != len(line)-1 || !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("not one line of JSON: %q", line)
		}
		got, err := jsonl.Decode(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		rec.Topic = strings.ToValidUTF8(topic, "\ufffd")
		got.Topic = strings.ToValidUTF8(got.Topic, "\ufffd")
		if len(topic) != len(rec.Topic) || !utf8.ValidString(topic) {
			got.Topic = rec.Topic // a run of invalid bytes is one U+FFFD for ToValidUTF8, one each for JSON
		}
		normalize(&rec)
		normalize(&got)
		if !reflect.DeepEqual(got, rec) {
			t.Fatalf("line %q\n got %+v\nwant %+v", line, got, rec)
		}
	})
}

func normalize(r *sdk.Record) {
	if r.Key != nil && len(r.Key) == 0 {
		r.Key = []byte{}
	}
	if r.Value != nil && len(r.Value) == 0 {
		r.Value = []byte{}
	}
	for i := range r.Headers {
		if h := &r.Headers[i]; h.Value != nil && len(h.Value) == 0 {
			h.Value = []byte{}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"topic":"t","key":"!","key_encoding":"base64"}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = jsonl.Decode(data) }) // must not panic
}

func TestDecodeRefuses(t *testing.T) {
	for _, s := range []string{``, `{"topic":"t"`, `{"topics":"t"}`, `{} {}`, `{"key":"!","key_encoding":"base64"}`, `{"key":"x","key_encoding":"hex"}`} {
		if _, err := jsonl.Decode([]byte(s)); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	var enc jsonl.Encoder
	rec := benchRecord()
	buf := enc.Append(nil, &rec)
	if n := testing.AllocsPerRun(100, func() { buf = enc.Append(buf[:0], &rec) }); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

func benchRecord() sdk.Record {
	return sdk.Record{Topic: "orders", Partition: 3, Offset: 123456789, Time: noon, Key: []byte("customer-17"), Value: bytes.Repeat([]byte("abcdefghij"), 10)}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		edit func(*sdk.Record)
	}{
		{"text100", func(*sdk.Record) {}},
		{"json100", func(r *sdk.Record) { r.Value = []byte(strings.Repeat(`{"a":12,"b":"cdefgh"},`, 5)[:100]) }},
		{"binary100", func(r *sdk.Record) { r.Value = bytes.Repeat([]byte{0xff, 0x00}, 50) }},
		{"text1k", func(r *sdk.Record) { r.Value = bytes.Repeat([]byte("abcdefghij"), 102) }},
		{"headers", func(r *sdk.Record) { r.Headers = []sdk.Header{{Key: "trace", Value: []byte("abcdef")}} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var enc jsonl.Encoder
			rec := benchRecord()
			c.edit(&rec)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				rec.Offset++
				rec.Time = rec.Time.Add(20 * time.Microsecond)
				buf = enc.Append(buf[:0], &rec)
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}
