package human_test

import (
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/human"
)

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		human.Count(0):               "0",
		human.Count(999):             "999",
		human.Count(-1000):           "-1,000",
		human.Count(1284030):         "1,284,030",
		human.Short(41200):           "41,200",
		human.Short(3_100_000):       "3.1 M",
		human.Short(2_000_000_000):   "2.0 G",
		human.Rate(411_987):          "412,000/s",
		human.Rate(38.2):             "38/s",
		human.Rate(0.51):             "0.5/s",
		human.Rate(-1):               "0/s",
		human.Bytes(512):             "512 B",
		human.Bytes(2150):            "2.1 KiB",
		human.Bytes(14 << 20):        "14 MiB",
		human.Bytes(3 << 40):         "3.0 TiB",
		human.Plural(1, "problem"):   "1 problem",
		human.Plural(2000, "record"): "2,000 records",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                         "0 s",
		30 * time.Microsecond:                "30 µs",
		11 * time.Millisecond:                "11 ms",
		400 * time.Millisecond:               "0.4 s",
		12 * time.Second:                     "12 s",
		200 * time.Second:                    "3 min 20 s",
		time.Hour:                            "1 h",
		5*time.Hour + 2*time.Minute + 1:      "5 h 2 min",
		76*time.Hour + 59*time.Minute + 59e9: "3 d 4 h",
	} {
		if got := human.Span(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
