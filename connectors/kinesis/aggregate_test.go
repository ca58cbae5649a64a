package kinesis

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what the format uses
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// aggregate makes what the producer library makes: parts that refer to keys by number.
func aggregate(keys, explicit []string, parts ...[]byte) []byte {
	var body []byte
	for _, k := range keys {
		body = protowire.AppendString(protowire.AppendTag(body, fieldKeys, protowire.BytesType), k)
	}
	for _, k := range explicit {
		body = protowire.AppendString(protowire.AppendTag(body, fieldExplicit, protowire.BytesType), k)
	}
	for _, p := range parts {
		body = protowire.AppendBytes(protowire.AppendTag(body, fieldRecords, protowire.BytesType), p)
	}
	return sealed(body)
}

func sealed(body []byte) []byte {
	sum := md5.Sum(body) //nolint:gosec // what the format uses
	return append(append(bytes.Clone(aggregateMagic), body...), sum[:]...)
}

// onePart is a record of an aggregate; explicit is -1 for none.
func onePart(key, explicit int, data string) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, fieldKeyIndex, protowire.VarintType), uint64(key))
	if explicit >= 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, fieldExplicitIndex, protowire.VarintType), uint64(explicit))
	}
	return protowire.AppendString(protowire.AppendTag(b, fieldPayload, protowire.BytesType), data)
}

func numberedParts(from, n int) [][]byte {
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = onePart(0, -1, fmt.Sprint(from+i))
	}
	return parts
}

func TestE58WhatIsNoAggregateIsPassedOnAsItIs(t *testing.T) {
	t.Parallel()
	good := aggregate([]string{"k"}, nil, onePart(0, -1, "a"))
	broken := bytes.Clone(good)
	broken[len(broken)-1]++
	sixteen := append(bytes.Clone(aggregateMagic), make([]byte, 16)...)
	for name, c := range map[string]struct {
		data  []byte
		found finding
		parts int
	}{
		"nothing":                       {nil, notAggregated, 0},
		"the magic only":                {aggregateMagic, notAggregated, 0},
		"the magic and sixteen bytes":   {sixteen, notAggregated, 0},
		"another digest":                {broken, notAggregated, 0},
		"other bytes":                   {bytes.Repeat([]byte("x"), 100), notAggregated, 0},
		"a torn message":                {sealed([]byte{0x1a, 0x05, 0x08}), damaged, 0},
		"a key outside of the table":    {aggregate([]string{"k"}, nil, onePart(1, -1, "a")), damaged, 0},
		"a hash outside of the table":   {aggregate([]string{"k"}, nil, onePart(0, 0, "a")), damaged, 0},
		"a part without data":           {aggregate([]string{"k"}, nil, []byte{0x08, 0x00}), damaged, 0},
		"a part without key":            {aggregate([]string{"k"}, nil, protowire.AppendString(protowire.AppendTag(nil, fieldPayload, protowire.BytesType), "x")), damaged, 0},
		"one part":                      {good, aggregated, 1},
		"no part":                       {aggregate([]string{"k"}, nil), aggregated, 0},
		"fields that nobody knows":      {sealed(append(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 7), good[4:len(good)-16]...)), aggregated, 1},
		"an empty value":                {aggregate([]string{"k"}, nil, onePart(0, -1, "")), aggregated, 1},
		"two keys and an explicit hash": {aggregate([]string{"k", "l"}, []string{"7"}, onePart(1, 0, "a"), onePart(0, -1, "b")), aggregated, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts, found := disaggregate(c.data)
			if found != c.found || len(parts) != c.parts {
				t.Errorf("found %d with %d parts, want %d with %d", found, len(parts), c.found, c.parts)
			}
		})
	}
}

// TestVectorsOfAnotherImplementation reads aggregates that the npm package aws-kinesis-agg made: hexadecimal, then the parts as key=value.
func TestVectorsOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/aggregates.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		data, err := hex.DecodeString(f[0])
		if err != nil {
			t.Fatal(err)
		}
		parts, found := disaggregate(data)
		if found != aggregated || len(parts) != len(f)-1 {
			t.Fatalf("found %d with %d parts, want %d", found, len(parts), len(f)-1)
		}
		for i, p := range parts {
			if got := string(p.key) + "=" + string(p.data); got != f[i+1] {
				t.Errorf("part %d is %q, want %q", i, got, f[i+1])
			}
		}
	}
}

func FuzzDisaggregate(f *testing.F) {
	f.Add(aggregate([]string{"k", "l"}, []string{"7"}, onePart(1, 0, "a"), onePart(0, -1, "b"))[4:30])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		parts, found := disaggregate(sealed(body)) // with the right digest, or nothing would be read
		if found != aggregated && parts != nil {
			t.Fatalf("%d parts of what is none", len(parts))
		}
		within(parts, lineage.HashRange{Known: true})
		if _, found := disaggregate(body); found == damaged && !bytes.HasPrefix(body, aggregateMagic) {
			t.Fatal("damaged without the magic")
		}
	})
}

// putAggregate writes parts as one record.
func (w *world) putAggregate(data []byte) {
	w.t.Helper()
	_, err := w.srv.Put("orders", kinesistest.Record{PartitionKey: "outer", Data: data})
	w.must(err)
}

func takeApart(s *Source) { s.Aggregated = true }

func TestE58AJobGoesOnInTheMiddleOfAnAggregate(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, takeApart, func(w *world) {
		w.putAggregate(aggregate([]string{"k"}, nil, numberedParts(0, 150)...))
		w.putAggregate(aggregate([]string{"k"}, nil, numberedParts(150, 50)...))
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) >= 64 })
		w.checkpoint()
		splits := w.last.splits[0]
		if p := splits[0].Position; p.Sub < 0 || p.Sub > 148 {
			t.Fatalf("the position is %s", p)
		}
		w.kill()
		w.start()
		w.arrive(200)
		w.run(time.Minute)
		w.each(w.all(), 0, 200)
		for i, r := range w.all()[:150] {
			if r.Offset != int64(i) || string(r.Key) != "k" || r.Sequence != w.all()[0].Sequence {
				t.Fatalf("part %d is %+v", i, r)
			}
		}
	})
}

func TestE58AnAggregateWithoutRecordsMovesThePosition(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, takeApart, func(w *world) {
		w.putAggregate(aggregate([]string{"k"}, nil))
		w.start()
		w.until(time.Minute, func() bool { return len(w.held()) == 1 })
		w.run(5 * time.Second)
		w.checkpoint()
		if p := w.last.splits[0][0].Position; p.Kind != lineage.AfterSequence {
			t.Errorf("the position is %s", p)
		}
	})
}

func TestE58MixedRecordsAndDamagedOnesAreDelivered(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, takeApart, func(w *world) {
		w.put(0, 1)
		w.putAggregate(aggregate([]string{"k"}, nil, numberedParts(1, 3)...))
		w.put(4, 1)
		w.putAggregate(sealed([]byte{0x1a, 0x05, 0x08}))
		w.start()
		w.arrive(6)
		w.each(w.all()[:5], 0, 5)
		if n, _ := w.metrics.get("damaged_aggregates"); n != 1 {
			t.Errorf("%v damaged ones were counted", n)
		}
	})
}

func TestE58AggregatesWithHashKeysOfAnotherShardAreDroppedWhenAskedFor(t *testing.T) {
	t.Parallel()
	for _, filter := range []bool{false, true} {
		t.Run(fmt.Sprint(filter), func(t *testing.T) {
			t.Parallel()
			inWorld(t, 2, func(s *Source) { s.Aggregated, s.FilterHashKeys = true, filter }, func(w *world) {
				half := "170141183460469231731687303715884105728"
				data := aggregate([]string{"k"}, []string{"0", half}, onePart(0, 0, "0"), onePart(0, 1, "1"))
				for _, hash := range []string{"0", half} {
					_, err := w.srv.Put("orders", kinesistest.Record{PartitionKey: "o", ExplicitHashKey: hash, Data: data})
					w.must(err)
				}
				_, err := w.srv.Put("orders", kinesistest.Record{PartitionKey: "o", ExplicitHashKey: "5", Data: aggregate([]string{"k"}, []string{"5"}, onePart(0, 0, "2"))})
				w.must(err)
				w.start()
				w.until(time.Minute, func() bool { return len(w.held()) == 2 })
				w.run(10 * time.Second)
				want, dropped := 5, 0.0
				if filter {
					want, dropped = 1, 2
				}
				if n, _ := w.metrics.get("filtered_aggregates"); len(w.all()) != want || n != dropped {
					t.Errorf("%d records and %v dropped", len(w.all()), n)
				}
			})
		})
	}
}

// E58 with enhanced fan-out: the same positions.
func TestE58SubscriptionsGoOnInTheMiddleOfAnAggregateToo(t *testing.T) {
	t.Parallel()
	inWorld(t, 1, func(s *Source) { takeApart(s); fanOut(s) }, func(w *world) {
		w.putAggregate(aggregate([]string{"k"}, nil, numberedParts(0, 150)...))
		w.start()
		w.until(time.Minute, func() bool { return len(w.all()) >= 64 })
		w.checkpoint()
		w.kill()
		w.start()
		w.arrive(150)
		w.run(time.Minute)
		w.each(w.all(), 0, 150)
	})
}
