package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// padding makes values of several lengths, the shortest without any.
const padding = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"

// valueOf is the value with that number in a part.
func valueOf(part, number int) string {
	return fmt.Sprintf("part %d, value %d.%s", part, number, padding[:number%7*8])
}

// parse is the inverse of valueOf.
func parse(value string) (part, number int, ok bool) {
	head, _, found := strings.Cut(value, ".")
	if !found {
		return 0, 0, false
	}
	if _, err := fmt.Sscanf(head, "part %d, value %d", &part, &number); err != nil {
		return 0, 0, false
	}
	return part, number, value == valueOf(part, number)
}

// span is a run of the values of a part.
type span struct{ from, to int }

// compare says what is wrong with values that were to be exactly these spans, one a part, in order within each part; empty for nothing.
func compare(values []string, want []span, ordered bool) string {
	got := make([][]int, len(want))
	for _, v := range values {
		part, number, ok := parse(v)
		if !ok || part >= len(want) {
			return fmt.Sprintf("a record holds %.60q, which was never appended", v)
		}
		got[part] = append(got[part], number)
	}
	for part, numbers := range got {
		if wrong := compareRun(part, numbers, want[part], ordered); wrong != "" {
			return wrong
		}
	}
	return ""
}

func compareRun(part int, numbers []int, want span, ordered bool) string {
	seen := make(map[int]int, len(numbers))
	for _, n := range numbers {
		seen[n]++
	}
	for n := want.from; n < want.to; n++ {
		switch k := seen[n]; {
		case k == 0:
			return fmt.Sprintf("value %d of part %d was lost (%d of %d arrived)", n, part, len(numbers), want.to-want.from)
		case k > 1:
			return fmt.Sprintf("value %d of part %d was delivered %s", n, part, times(k))
		}
	}
	for _, n := range numbers {
		if n < want.from || n >= want.to {
			return fmt.Sprintf("value %d of part %d was delivered, which had been delivered before (or was to come later)", n, part)
		}
	}
	if ordered && !slices.IsSorted(numbers) {
		return fmt.Sprintf("the values of part %d came out of order: %v", part, firstDisorder(numbers))
	}
	return ""
}

// firstDisorder answers the numbers around the first that is out of order.
func firstDisorder(numbers []int) []int {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] < numbers[i-1] {
			return numbers[max(0, i-2):min(len(numbers), i+2)]
		}
	}
	return nil
}

func times(n int) string {
	if n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
