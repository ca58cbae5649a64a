package main

import "testing"

func TestEveryRecordComesOnceAndInTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	checked, err := run(t.Context())
	if err != nil || checked != 4*rounds*keys {
		t.Errorf("%d records, error %v", checked, err)
	}
}
