package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Every reader gets every record, of every codec: who skips some is fast.
func TestEveryReaderReadsEverything(t *testing.T) {
	i := 0
	for name, r := range readers {
		codec := []string{"none", "lz4", "snappy", "zstd", "gzip"}[i%5]
		i++
		t.Run(name+"/"+codec, func(t *testing.T) {
			t.Parallel()
			const want, size = 3000, 100
			broker, err := newBroker(t.Context(), content{Records: want, Size: size, Codec: codec})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s := sum{want: want}
			if err := r(ctx, broker.ListenAddrs()[0], want, &s); err != nil {
				t.Fatal(err)
			}
			const offsets = partitions * (want / partitions) * (want/partitions - 1) / 2
			if s.records != want || s.bytes != want*size || s.offsets != offsets || s.last.Before(s.first) || s.first.IsZero() {
				t.Errorf("%d records, %d bytes, offsets %d, from %v to %v; want %d, %d, %d", s.records, s.bytes, s.offsets, s.first, s.last, want, want*size, offsets)
			}
		})
	}
}

func TestDenseTopicsHaveTheBatchesTheySay(t *testing.T) {
	const perBatch = 5000
	broker, err := newBroker(t.Context(), content{Records: 2 * partitions * perBatch, Size: 1, Codec: "zstd", PerBatch: perBatch})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	for p := range int32(partitions) {
		if info := broker.PartitionInfo(topicName, p); info == nil || info.HighWatermark != 2*perBatch {
			t.Errorf("partition %d: %+v", p, info)
		}
	}
}

func TestMedian(t *testing.T) {
	costs := []cost{{reading: 3}, {reading: 1}, {reading: 2}}
	if got := median(costs, func(i int) float64 { return float64(costs[i].reading) }); got != 2 {
		t.Errorf("median %g", got)
	}
}

func TestWhatAReaderSays(t *testing.T) {
	if got := spoken("something\n"+reading+"1.5\n", time.Hour); got != 1500*time.Millisecond {
		t.Errorf("%v", got)
	}
	if got := spoken("nothing", time.Hour); got != time.Hour {
		t.Errorf("%v", got)
	}
}

func TestCounterAddsUpSeries(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE output_sent counter\noutput_sent{path=\"a\"} 2e3\noutput_sent{path=\"b\"} 5\noutput_sent_bytes 7\n")
	}))
	defer server.Close()
	if n, err := counter(t.Context(), server.URL, "output_sent"); err != nil || n != 2005 {
		t.Errorf("%g, %v", n, err)
	}
}

func TestRepeatsAreCounted(t *testing.T) {
	var s seen
	for _, p := range []place{{0, 1}, {1, 1}, {0, 1}, {0, 2}} {
		s.add(p)
	}
	if s.all != 4 || s.different != 3 || s.repeated != 1 {
		t.Errorf("%+v", s)
	}
}
