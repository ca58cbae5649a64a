package docs_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// awaited are pages that are still being written in English; the mirror comes when they are done.
var awaited []string

// TestMirror: a page in Chinese says what the page in English says, as far as that can be told without knowing either language.
func TestMirror(t *testing.T) {
	for _, difference := range differences(bothLanguages(t)) {
		t.Error(difference)
	}
}

// bothLanguages are the pages and their mirrors, by path.
func bothLanguages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"README.md", "en/*.md", "zh/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		for _, path := range found {
			pages[path] = read(t, path)
		}
	}
	for _, path := range awaited {
		if _, ok := pages[mirrorOf(path)]; ok {
			t.Errorf("%s has its mirror: take it out of awaited", path)
			continue
		}
		delete(pages, path)
	}
	return pages
}

// mirrorOf is where the mirror of an original is, and "" for other pages.
func mirrorOf(path string) string {
	if path == "README.md" {
		return "zh/README.md"
	}
	if name, ok := strings.CutPrefix(path, "en/"); ok {
		return "zh/" + name
	}
	return ""
}

// originalOf is the other way round.
func originalOf(path string) string {
	name, ok := strings.CutPrefix(path, "zh/")
	switch {
	case !ok:
		return ""
	case name == "README.md":
		return name
	}
	return "en/" + name
}

// comparison is of all pages; from and to are the two at hand.
type comparison struct {
	pages    map[string][]block
	from, to string
	found    []string
}

// differences compares all pages, given by path, with their mirrors. Each line of its answer has both places and the remedy.
func differences(pages map[string]string) []string {
	c := &comparison{pages: map[string][]block{}}
	for path, text := range pages {
		c.pages[path] = parse(text)
	}
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		from, to := path, mirrorOf(path)
		if to == "" {
			from, to = originalOf(path), path
		}
		_, original := pages[from]
		_, mirror := pages[to]
		switch {
		case !mirror:
			c.found = append(c.found, fmt.Sprintf("%s: has no mirror: translate it as %s", from, to))
		case !original:
			c.found = append(c.found, fmt.Sprintf("%s: mirrors nothing: delete it, or write %s", to, from))
		case path == from:
			c.from, c.to = from, to
			c.compare()
		}
	}
	return c.found
}

// report has the lines of what differs in both pages.
func (c *comparison) report(from, to int, format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf("%s:%d, %s:%d: ", c.from, from, c.to, to)+fmt.Sprintf(format, args...))
}

// sections cuts a page before each heading.
func sections(blocks []block) [][]block {
	var list [][]block
	for _, b := range blocks {
		if b.kind == aHeading || len(list) == 0 {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], b)
	}
	return list
}

// levels are those of the headings, in order.
func levels(sections [][]block) (list []string) {
	for _, s := range sections {
		list = append(list, s[0].mark)
	}
	return list
}

// shape is what kinds of blocks a section has. A heading that was moved is found by it, where levels say nothing.
func shape(section []block) (list []string) {
	for _, b := range section {
		list = append(list, string(b.kind)+b.mark)
	}
	return list
}

func (c *comparison) compare() {
	originals, mirrors := sections(c.pages[c.from]), sections(c.pages[c.to])
	if slices.Equal(levels(originals), levels(mirrors)) {
		for i := range originals {
			c.section(originals[i], mirrors[i])
		}
		return
	}
	at := 0
	for at < min(len(originals), len(mirrors)) && slices.Equal(shape(originals[at]), shape(mirrors[at])) {
		at++
	}
	line, what := place(originals, at)
	copied, instead := place(mirrors, at)
	c.report(line, copied, "%d headings and %d in the mirror; they, or what stands below them, are alike up to %s and %s: "+
		"give the mirror the same headings in the same order, on the same levels", len(originals), len(mirrors), what, instead)
}

// place is where a section begins, and the end of the page behind the last one.
func place(sections [][]block, at int) (line int, what string) {
	if at < len(sections) {
		return sections[at][0].line, sections[at][0].String()
	}
	last := sections[at-1]
	return last[len(last)-1].line, "the end"
}

func (c *comparison) section(originals, mirrors []block) {
	last := func(list []block) block { return list[len(list)-1] }
	for i, a := range originals {
		if i == len(mirrors) {
			c.report(a.line, last(mirrors).line, "%s has no counterpart behind %s: translate it", a, last(mirrors))
			return
		}
		b := mirrors[i]
		if a.kind != b.kind {
			c.report(a.line, b.line, "%s stands where the mirror has %s: translate what is missing, take out what is too much", a, b)
			return
		}
		c.block(a, b)
	}
	if len(mirrors) > len(originals) {
		b := mirrors[len(originals)]
		c.report(last(originals).line, b.line, "the original has nothing for %s of the mirror: take it out, or write it there too", b)
	}
}

func (c *comparison) block(a, b block) {
	switch a.kind {
	case aCode:
		c.code(a, b)
	case aComment:
		if a.mark != b.mark {
			c.report(a.line, b.line, "the comment is %q, in the mirror %q: copy it", a.mark, b.mark)
		}
	case aTable:
		c.table(a, b)
	case aList:
		c.list(a, b)
	case aHeading, aParagraph:
		c.text(a.rows[0], b.rows[0], 0)
	}
}

func (c *comparison) code(a, b block) {
	if a.mark != b.mark {
		c.report(a.line, b.line, "the block begins with %q, in the mirror with %q: copy the line", a.mark, b.mark)
	}
	lines, copied := strings.Split(a.rows[0].cells[0], "\n"), strings.Split(b.rows[0].cells[0], "\n")
	for i, line := range lines {
		if i == len(copied) || line != copied[i] {
			c.report(a.line+1+i, b.line+1+i, "the code differs from %q on: copy the block as it is, comments included", line)
			return
		}
	}
	if len(copied) > len(lines) {
		c.report(a.line+1+len(lines), b.line+1+len(lines), "the code of the mirror is longer: copy the block as it is")
	}
}

// generatedColumns are those of a generated table that say what the code says: option, type and default of an option.
const generatedColumns = 3

func (c *comparison) table(a, b block) {
	for i, r := range a.rows {
		if i == len(b.rows) {
			c.report(r.line, b.rows[i-1].line, "the table of the mirror ends before the row of %q: translate it", r.cells[0])
			return
		}
		s := b.rows[i]
		if len(r.cells) != len(s.cells) {
			c.report(r.line, s.line, "the row has %d columns, in the mirror %d", len(r.cells), len(s.cells))
			return
		}
		if !slices.Equal(spans(r.cells[0]), spans(s.cells[0])) {
			c.report(r.line, s.line, "the row of %q stands where the mirror has that of %q: same rows in the same order, with the same code in the first column",
				r.cells[0], s.cells[0])
			return
		}
		for j := range r.cells {
			switch {
			case !a.generated || i == 0 || j >= min(generatedColumns, len(r.cells)-1):
				c.text(r, s, j)
			case r.cells[j] != s.cells[j]:
				c.report(r.line, s.line, "column %d of the generated row of %q is %q, in the mirror %q: copy it, and see whether what it means has changed",
					j+1, r.cells[0], r.cells[j], s.cells[j])
			}
		}
	}
	if n := len(a.rows); len(b.rows) > n {
		c.report(a.rows[n-1].line, b.rows[n].line, "the original has no row for %q: take it out", b.rows[n].cells[0])
	}
}

func (c *comparison) list(a, b block) {
	for i, r := range a.rows {
		if i == len(b.rows) {
			c.report(r.line, b.rows[i-1].line, "the list has %d items, in the mirror %d: translate %q", len(a.rows), len(b.rows), r.cells[1])
			return
		}
		s := b.rows[i]
		if r.cells[0] != s.cells[0] {
			c.report(r.line, s.line, "the item begins with %q, in the mirror with %q: same lists, same nesting", r.cells[0], s.cells[0])
			return
		}
		c.text(r, s, 1)
	}
	if n := len(a.rows); len(b.rows) > n {
		c.report(a.rows[n-1].line, b.rows[n].line, "the list has %d items, in the mirror %d: take out %q", n, len(b.rows), b.rows[n].cells[1])
	}
}

var codeSpan = regexp.MustCompile("`[^`]+`")

// spans are the pieces of code in a text, each once.
func spans(text string) []string {
	list := codeSpan.FindAllString(text, -1)
	slices.Sort(list)
	return slices.Compact(list)
}

// text compares what is not translated in a translated text: code and links.
func (c *comparison) text(a, b row, cell int) {
	c.same(a, b, "code", spans(a.cells[cell]), spans(b.cells[cell]))
	c.same(a, b, "link", c.links(a.cells[cell]), c.copiedLinks(b.cells[cell]))
}

func (c *comparison) same(a, b row, what string, want, got []string) {
	without := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
	}
	var found []string
	if less := without(want, got); len(less) > 0 {
		found = append(found, "lacks the "+what+" "+strings.Join(less, ", "))
	}
	if more := without(got, want); len(more) > 0 {
		found = append(found, "has the "+what+" "+strings.Join(more, ", ")+", which the original has not")
	}
	if len(found) > 0 {
		c.report(a.line, b.line, "the mirror %s: translate the text as it is now", strings.Join(found, " and "))
	}
}

// links are those that the mirror of a text must have: to a mirror where there is one, to the heading in the same place of it.
// A link to a page in Chinese, which is how a page refers to its own mirror, becomes one to the original of that.
func (c *comparison) links(text string) (list []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		path, anchor := target(c.from, m[1])
		if to := mirrorOf(path); to != "" {
			path, anchor = to, c.translated(path, to, anchor)
		} else if from := originalOf(path); from != "" {
			path = from
		}
		list = append(list, c.written(path, anchor))
	}
	return list
}

func (c *comparison) copiedLinks(text string) (list []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		list = append(list, c.written(target(c.to, m[1])))
	}
	return list
}

// target is a path from this folder, or an address, and the heading there.
func target(page, link string) (path, anchor string) {
	if strings.Contains(link, "://") {
		return link, ""
	}
	path, anchor, _ = strings.Cut(link, "#")
	if path == "" {
		return page, anchor
	}
	return filepath.Join(filepath.Dir(page), path), anchor
}

// translated is the heading of a mirror in the place of one of the original.
func (c *comparison) translated(from, to, anchor string) string {
	originals, mirrors := headings(c.pages[from]), headings(c.pages[to])
	if i := slices.Index(originals, anchor); i >= 0 && i < len(mirrors) {
		return mirrors[i]
	}
	return anchor
}

func headings(blocks []block) (list []string) {
	for _, b := range blocks {
		if b.kind == aHeading {
			list = append(list, anchors(b.mark+" "+b.rows[0].cells[0])...)
		}
	}
	return list
}

// written is a link as the mirror at hand has to write it. A heading of a mirror that has others than its original, or is not there, counts for nothing.
func (c *comparison) written(path, anchor string) string {
	if from := originalOf(path); from != "" && len(headings(c.pages[path])) != len(headings(c.pages[from])) {
		anchor = ""
	}
	switch {
	case path == c.to && anchor != "":
		path = ""
	case !strings.Contains(path, "://"):
		if rel, err := filepath.Rel(filepath.Dir(c.to), path); err == nil {
			path = rel
		}
	}
	if anchor != "" {
		anchor = "#" + anchor
	}
	return path + anchor
}
