// Package human writes numbers for people: with separators, units and ages.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count writes n with separators: 1,284,030.
func Count[T ~int | ~int32 | ~int64 | ~uint64](n T) string {
	digits, sign := fmt.Sprint(n), ""
	if strings.HasPrefix(digits, "-") {
		digits, sign = digits[1:], "-"
	}
	first := (len(digits)-1)%3 + 1
	var b strings.Builder
	b.WriteString(sign + digits[:first])
	for i := first; i < len(digits); i += 3 {
		b.WriteString("," + digits[i:i+3])
	}
	return b.String()
}

// Short writes n in a few characters: 941, 41,200, 3.1 M, 2.0 G.
func Short[T ~int | ~int64 | ~uint64](n T) string {
	f := float64(n)
	switch a := math.Abs(f); {
	case a < 1e6:
		return Count(n)
	case a < 1e9:
		return fmt.Sprintf("%.1f M", f/1e6)
	default:
		return fmt.Sprintf("%.1f G", f/1e9)
	}
}

// Rate writes a number per second with as many digits as matter: 412,000/s, 38/s, 0.5/s.
func Rate(perSecond float64) string {
	switch {
	case math.IsNaN(perSecond) || math.IsInf(perSecond, 0) || perSecond < 0.05:
		return "0/s"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64) + "/s"
	}
	digit := math.Pow(10, math.Floor(math.Log10(perSecond))-2) // three digits
	if digit < 1 {
		digit = 1
	}
	return Count(int64(math.Round(perSecond/digit)*digit)) + "/s"
}

// Bytes writes a size: 512 B, 2.1 KiB, 14 MiB.
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		f /= 1 << 10
		if f < 10 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		if f < 1<<10 {
			return fmt.Sprintf("%.0f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", f/(1<<10))
}

// Span writes a duration or an age: 11 ms, 0.4 s, 12 s, 3 min 20 s, 5 h 2 min, 3 d 4 h.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return pair(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "min")
	default:
		return pair(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func pair(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// Plural writes a count with its noun: 1 problem, 2 problems.
func Plural[T ~int | ~int32 | ~int64 | ~uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
