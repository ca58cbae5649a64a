package rides_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/penstock-dev/penstock/testdata/rides"
)

func TestFirst(t *testing.T) {
	const want = `{"ride":0,"driver":"d058","from":"Central Station","to":"University","km":5,"fare":12.45,"ended":"2026-01-01T05:00:00Z"}`
	if got := string(rides.At(0).Value()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The data set never changes: proofs compare what was read with what is computed again.
func TestStable(t *testing.T) {
	sum := sha256.New()
	var perPartition [4]int
	for i := range int64(rides.Count) {
		r := rides.At(i)
		sum.Write(r.Value())
		perPartition[r.Partition(4)]++
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != "bdf280a6c432d420d51865cabde1efdab630de1cda693504870e57ef963de9cd" {
		t.Errorf("sum %s", got)
	}
	for p, n := range perPartition {
		if n < rides.Count/5 {
			t.Errorf("partition %d has %d rides", p, n)
		}
	}
}
