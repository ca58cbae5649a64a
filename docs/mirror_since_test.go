package docs_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "note that each page in Chinese says what the page in English says now")

// mirrored has what each section in English was when its mirror was written: page, heading, digest.
const mirrored = "testdata/mirrored.txt"

// TestMirrorIsCurrent notices what [TestMirror] cannot: words that changed in English, the meaning of an option among them.
// -update says that the mirror has been brought in line with them.
func TestMirrorIsCurrent(t *testing.T) {
	pages := bothLanguages(t)
	if *update {
		if found := differences(pages); len(found) > 0 {
			t.Fatalf("the mirrors are not in line yet: %s", strings.Join(found, "\n"))
		}
		var text strings.Builder
		for _, s := range states(pages) {
			fmt.Fprintln(&text, s)
		}
		if err := os.WriteFile(mirrored, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range changes(pages, read(t, mirrored)) {
		t.Error(change)
	}
}

// state is what a section in English is now.
type state struct {
	page, heading, digest string
	at                    block
	section               int
}

func (s state) String() string { return s.page + " " + s.heading + " " + s.digest }

// states are those of all sections that have a mirror, page by page.
func states(pages map[string]string) (list []state) {
	for page, text := range pages {
		if mirrorOf(page) == "" {
			continue
		}
		for i, s := range sections(parse(text)) {
			heading := strings.Join(headings(s[:1]), "")
			list = append(list, state{page, heading, digest(s), s[0], i})
		}
	}
	slices.SortStableFunc(list, func(a, b state) int { return strings.Compare(a.page, b.page) })
	return list
}

// digest does not depend on how lines are broken, except in code.
func digest(section []block) string {
	h := sha256.New()
	for _, b := range section {
		fmt.Fprintf(h, "%s %q\n", b.kind, b.mark)
		for _, r := range b.rows {
			for _, text := range r.cells {
				if b.kind != aCode {
					text = strings.Join(strings.Fields(text), " ")
				}
				fmt.Fprintf(h, "%q\n", text)
			}
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:4])
}

// changes compares the sections in English with what they were. Each line of its answer has both places and the remedy.
func changes(pages map[string]string, before string) (list []string) {
	const remedy = "bring the mirror in line with it, then go test ./docs -run TestMirror -update"
	known := strings.Split(strings.TrimSpace(before), "\n")
	now := states(pages)
	for _, s := range now {
		if slices.Contains(known, s.String()) {
			continue
		}
		to := mirrorOf(s.page)
		line, _ := place(append([][]block{{{line: 1}}}, sections(parse(pages[to]))...), s.section+1)
		list = append(list, fmt.Sprintf("%s:%d, %s:%d: the section of %s has changed since its mirror was written (git diff shows how): %s",
			s.page, s.at.line, to, line, s.at, remedy))
	}
	if len(list) == 0 && len(known) != len(now) {
		list = append(list, mirrored+" has sections that are there no more: go test ./docs -run TestMirror -update")
	}
	return list
}

// TestChangesAreNoticed changes the words of a page in English, which its mirror cannot show.
func TestChangesAreNoticed(t *testing.T) {
	pages := map[string]string{"en/page.md": originalPage, "zh/page.md": mirrorPage}
	var before strings.Builder
	for _, s := range states(pages) {
		fmt.Fprintln(&before, s)
	}
	for name, test := range map[string]struct{ page, old, new, want string }{
		"nothing":            {"", "", "", ""},
		"the mirror":         {"zh/page.md", "第一个", "第一个选项", ""},
		"a line break":       {"en/page.md", "do\n   this", "do this", ""},
		"a word":             {"en/page.md", "First", "Second", `en/page.md:1, zh/page.md:1: the section of "# Title" has changed`},
		"what an option is":  {"en/page.md", "The first.", "The last.", `en/page.md:10, zh/page.md:9: the section of "## Options" has changed`},
		"a section is added": {"en/page.md", "## End", "## End\n\n## More", `the section of "## More" has changed`},
		"one is renamed":     {"en/page.md", "## Options", "## Settings", `the section of "## Settings" has changed`},
		"one is taken out":   {"en/page.md", "## End\n\n- last [elsewhere](https://example.org/)\n", "", mirrored + " has sections that are there no more"},
	} {
		t.Run(name, func(t *testing.T) {
			now := map[string]string{}
			for path, text := range pages {
				now[path] = text
				if path == test.page {
					now[path] = strings.Replace(text, test.old, test.new, 1)
				}
			}
			found := strings.Join(changes(now, before.String()), "\n")
			if test.want == "" && found != "" || !strings.Contains(found, test.want) {
				t.Errorf("%q, want %q", found, test.want)
			}
		})
	}
}
