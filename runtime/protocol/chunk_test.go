package protocol

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// TestChunksAreFullAndFit: each run fits, would not fit with the next split, and together they are the input.
func TestChunksAreFullAndFit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		splits := make([]Split, rng.IntN(40))
		for i := range splits {
			splits[i] = Split{
				ID:   sdk.SplitID(strings.Repeat("x", 1+rng.IntN(300))),
				Data: sdk.VersionedBytes{Version: rng.IntN(200), Data: make([]byte, rng.IntN(200))},
			}
		}
		const limit = 600
		chunks, err := ChunkSplits(splits, limit)
		if err != nil {
			t.Fatal(err)
		}
		var joined []Split
		for i, chunk := range chunks {
			if n := payloadSize(t, chunk); n > limit || len(chunk) == 0 {
				t.Fatalf("round %d: chunk of %d bytes with %d splits", round, n, len(chunk))
			}
			if i+1 < len(chunks) {
				if n := payloadSize(t, append(chunk, chunks[i+1][0])); n <= limit {
					t.Fatalf("round %d: the next split would have fitted (%d bytes)", round, n)
				}
			}
			joined = append(joined, chunk...)
		}
		if len(splits) > 0 && !reflect.DeepEqual(joined, splits) {
			t.Fatalf("round %d: the chunks are not the input", round)
		}
	}
	if _, err := ChunkSplits([]Split{{ID: "huge", Data: sdk.VersionedBytes{Data: make([]byte, 600)}}}, 600); err == nil || !strings.Contains(err.Error(), "huge") {
		t.Errorf("got %v", err)
	}
}

func payloadSize(t *testing.T, splits []Split) int {
	t.Helper()
	_, data, err := EncodePayload(AddSplitsPayload{Splits: splits})
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}
