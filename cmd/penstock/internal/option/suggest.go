package option

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// choices lists what is allowed and, when one of it is close to what was written, says so.
func choices(got string, allowed []string) string {
	text := strings.Join(allowed, ", ")
	if s := Suggest(got, allowed); s != "" {
		text += fmt.Sprintf("; did you mean %q?", s)
	}
	return text
}

// didYouMean is the suggestion alone, in parentheses after a space; empty without one.
func didYouMean(got string, allowed []string) string {
	if s := Suggest(got, allowed); s != "" {
		return fmt.Sprintf(" (did you mean %q?)", s)
	}
	return ""
}

// Suggest returns the candidate that got is most probably a misspelling of, or "". About a third of the letters may be wrong.
func Suggest(got string, candidates []string) string {
	got = strings.ToLower(got)
	best, least := "", (len(got)+2)/3+1
	for _, c := range candidates {
		if d := distance(got, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// maxSuggest bounds the work: what is longer than any name is no misspelling of one.
const maxSuggest = 64

// distance is the number of insertions, deletions, replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	if len(a) > maxSuggest || len(b) > maxSuggest {
		return math.MaxInt
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func names(options []*Option) []string {
	list := make([]string, 0, len(options))
	for _, o := range options {
		list = append(list, o.Name)
	}
	slices.Sort(list)
	return list
}
