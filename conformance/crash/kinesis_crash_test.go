package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The short form of `go run ./conformance/crash -source kinesis`.
func TestKilledWhileItsStreamIsReshardedTheOutputIsExactlyOnceAndInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and kills the command; left out with -short")
	}
	for name, form := range map[string]struct{ rescale, efo bool }{
		"polling, other parallelism after each kill": {rescale: true}, "enhanced fan-out": {efo: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := crashKinesis(t.Context(), config{
				kills: 5, rescale: form.rescale, efo: form.efo, interval: 200 * time.Millisecond,
				shortest: 30 * time.Millisecond, longest: time.Second, seed: uint64(time.Now().UnixNano()), say: t.Logf,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r)
		})
	}
}

func TestTheVerifierSeesEveryKindOfWrongLineage(t *testing.T) {
	const (
		first  = `{"shard":"a","key":"key-0","value":"0"}` + "\n"
		second = `{"shard":"a","key":"key-0","value":"1"}` + "\n"
		child  = `{"shard":"b","key":"key-0","value":"2"}` + "\n"
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  lineageReport
	}{
		"good":     {map[string]string{"1-t000-0000": first, "2-t001-0000": second, "3-t000-0000": child}, lineageReport{files: 3, records: 3, shards: 2}},
		"lost":     {map[string]string{"1-t000-0000": first, "3-t000-0000": child}, lineageReport{files: 2, records: 2, shards: 2, lost: 1}},
		"repeated": {map[string]string{"1-t000-0000": first + second + second, "3-t000-0000": child}, lineageReport{files: 2, records: 4, shards: 2, repeated: 1, disorder: 1}},
		"disorder": {map[string]string{"1-t000-0000": second, "2-t000-0000": first, "3-t000-0000": child}, lineageReport{files: 3, records: 3, shards: 2, disorder: 1}},
		"a child before its parent's end": {
			map[string]string{"1-t000-0000": first, "2-t000-0000": child, "3-t000-0000": second}, lineageReport{files: 3, records: 3, shards: 2, disorder: 1},
		},
		"a child in the checkpoint of its parent's end": {
			map[string]string{"1-t000-0000": first + second, "1-t001-0000": child}, lineageReport{files: 2, records: 3, shards: 2, mixed: 1},
		},
		"foreign": {
			map[string]string{"1-t000-0000": first + second, "2-t000-0000": child + `{"shard":"b","key":"key-0","value":"3"}` + "\n" + `{"shard":"b","key":"other","value":"0"}` + "\n"},
			lineageReport{files: 2, records: 5, shards: 2, unknown: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				if err := os.WriteFile(filepath.Join(dir, stream+"-0000000"+file+".jsonl"), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, ".penstock-open.part"), []byte(first), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := verifyLineage(dir, [streamKeys]int{3})
			if err != nil {
				t.Fatal(err)
			}
			r.fewest = 0 // most keys have no record here
			if r != c.want {
				t.Errorf("%+v, want %+v", r, c.want)
			}
			if wrong := r.check(0) != nil; wrong != (name != "good") {
				t.Errorf("check says %v", r.check(0))
			}
			if r.check(2) == nil {
				t.Error("it proves nothing about keys that went through one shard, and is taken")
			}
		})
	}
}
