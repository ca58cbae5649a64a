package kafka

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// The published format stays readable.
func TestPreparedGolden(t *testing.T) {
	const v1 = `{"version":1,"job":"orders","task":3,"attempt":17,"checkpoint":42,"transactional_id":"penstock-orders-3-1","producer_id":9,"producer_epoch":4,` +
		`"records":7,"began":"2026-01-02T03:04:05Z","timeout_ms":900000,"places":[{"topic":"out","partition":2,"first":10,"last":12}]}`
	s := (&Sink{}).withDefaults()
	p, err := s.decodePrepared([]byte(v1), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.encode(); err != nil || string(got) != v1 {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []string{
		``, `{`, `{"version":2}`, strings.Replace(v1, "orders", "other", 1), strings.Replace(v1, "penstock-orders-3-1", "penstock-other-3-1", 1),
		strings.Replace(v1, `"producer_id":9`, `"producer_id":-9`, 1), strings.Replace(v1, `"records"`, `"recrods"`, 1),
	} {
		if _, err := s.decodePrepared([]byte(bad), "orders"); !errors.Is(err, ErrPrepared) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzPrepared(f *testing.F) {
	s := (&Sink{}).withDefaults()
	f.Add([]byte(`{"version":1,"job":"j","transactional_id":"penstock-j-0-0"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := s.decodePrepared(data, "j")
		if err != nil {
			return
		}
		again, err := p.encode()
		if err != nil || !json.Valid(again) {
			t.Errorf("%s: %v", again, err)
		}
	})
}

func TestSlotIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"penstock-a-0-0": true, "penstock-a-12-3": true, "penstock-a-1": false, "penstock-a-1-2-3": false, "penstock-a-01-2": false,
		"penstock-a--1-2": false, "penstock-a-1-": false, "penstock-ab-1-2": false, "x-a-1-2": false, "penstock-a-1-99999999999": false,
	} {
		if isSlotID(id, "penstock", "a") != want {
			t.Errorf("%s: not %t", id, want)
		}
	}
	if id := slotID("penstock", "a-1", 2, 3); isSlotID(id, "penstock", "a") || !isSlotID(id, "penstock", "a-1") {
		t.Errorf("%s belongs to the wrong job", id)
	}
}
