package conformance

import (
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

type anySplit struct{}

func (anySplit) SplitID() sdk.SplitID { return "" }

// Every case says everything, has its code, and is there once.
func TestCasesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		for field, text := range map[string]string{
			"purpose": c.Purpose, "requirement": c.Requirement, "pass": c.Pass, "cause": c.Cause, "look": c.Look,
		} {
			if text == "" {
				t.Errorf("%s has no %s", c.Name, field)
			}
		}
		if strings.Count(c.Name, "/") != 1 {
			t.Errorf("%q is not a group and a case", c.Name)
		}
		if scenario[anySplit, Backend](c.Name) == nil {
			t.Errorf("%s has no code", c.Name)
		}
	}
	if scenario[anySplit, Backend]("reader/unheard_of") != nil {
		t.Error("a name that is no case has code")
	}
}

func TestCasesOnTheWallExist(t *testing.T) {
	for _, name := range wall {
		if _, ok := caseNamed(name); !ok {
			t.Errorf("%q is no case", name)
		}
	}
}

func TestCompareTellsWhatIsWrong(t *testing.T) {
	values := func(numbers ...int) (all []string) {
		for _, n := range numbers {
			all = append(all, valueOf(0, n))
		}
		return all
	}
	for want, got := range map[string][]string{
		"":                                       values(3, 4, 5),
		"value 4 of part 0 was lost":             values(3, 5),
		"value 5 of part 0 was delivered twice":  values(3, 4, 5, 5),
		"came out of order":                      values(4, 3, 5),
		"value 2 of part 0 was delivered, which": values(2, 3, 4, 5),
		"which was never appended":               {"3"},
	} {
		wrong := compare(got, []span{{3, 6}}, true)
		if (want == "") != (wrong == "") || !strings.Contains(wrong, want) {
			t.Errorf("%v: %q, want %q", got, wrong, want)
		}
	}
}
