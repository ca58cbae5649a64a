package demo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/testdata/rides"
)

const sample = 200

// records are the sample as a broker would hold it.
func records() []sdk.Record {
	var next [Partitions]int64
	var list []sdk.Record
	for i := range int64(sample) {
		r := rides.At(i)
		p := r.Partition(Partitions)
		list = append(list, sdk.Record{Topic: topic, Partition: p, Offset: next[p], Key: r.Key(), Value: r.Value(), Time: r.Ended})
		next[p]++
	}
	return list
}

func writeFiles(t *testing.T, list []sdk.Record) string {
	t.Helper()
	dir := t.TempDir()
	for i, part := range slices.Collect(slices.Chunk(list, 70)) {
		var enc jsonl.Encoder
		var b []byte
		for j := range part {
			b = enc.Append(b, &part[j])
		}
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".jsonl"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".hidden"), []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A proof is worth something only when it can fail.
func TestProof(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func([]sdk.Record) []sdk.Record
		want  Proof
	}{
		"good":      {func(l []sdk.Record) []sdk.Record { return l }, Proof{Records: sample}},
		"missing":   {func(l []sdk.Record) []sdk.Record { return slices.Delete(l, 10, 11) }, Proof{Records: sample - 1, Missing: 1}},
		"duplicate": {func(l []sdk.Record) []sdk.Record { return append(l, l[10]) }, Proof{Records: sample + 1, Duplicates: 1, Disorder: 1}},
		"changed": {func(l []sdk.Record) []sdk.Record {
			l[10].Value = []byte("x")
			return l
		}, Proof{Records: sample, Changed: 1}},
		"foreign": {func(l []sdk.Record) []sdk.Record { return append(l, sdk.Record{Partition: 99}) }, Proof{Records: sample + 1, Changed: 1}},
		"disorder": {func(l []sdk.Record) []sdk.Record {
			// the last record of a partition, moved to the front
			r := l[sample-1]
			return slices.Insert(l[:sample-1], 0, r)
		}, Proof{Records: sample, Disorder: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Verify(writeFiles(t, c.spoil(records())), sample)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got.Good(sample) != (name == "good") {
				t.Errorf("good is %t", got.Good(sample))
			}
		})
	}
}

func TestProofOfTornFile(t *testing.T) {
	dir := writeFiles(t, records())
	if err := os.WriteFile(filepath.Join(dir, "z.jsonl"), []byte(`{"topic":"rid`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(dir, sample); err == nil {
		t.Error("a torn line passed")
	}
}
