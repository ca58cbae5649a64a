package main

import (
	"testing"

	"github.com/penstock-dev/penstock/connectors/fake"
)

func TestEveryRecordReachesTheProgram(t *testing.T) {
	const splits, records = 3, 2000
	got, err := run(t.Context(), splits, records)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(splits * records * fake.DefaultRecordSize); got != want {
		t.Errorf("summed %d bytes, want %d", got, want)
	}
}
