package docs_test

import (
	"fmt"
	"regexp"
	"strings"
)

// kind is what a block of a page is.
type kind string

const (
	aHeading   kind = "heading"
	aCode      kind = "code block"
	aTable     kind = "table"
	aList      kind = "list"
	aComment   kind = "comment"
	aParagraph kind = "paragraph"
)

// block is a stretch of a page that Markdown shows as one thing.
type block struct {
	kind      kind
	line      int // of the page, from 1
	mark      string
	rows      []row // of a table without the line below its head; items of a list; else one
	generated bool  // between comments that say so
}

// row is a row of a table, cell by cell, or an item of a list, its mark and its text, or the one text of anything else.
type row struct {
	line  int
	cells []string
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6}) +(.*)$`)
	itemLine    = regexp.MustCompile(`^( *)([-*]|\d+\.) +(.*)$`)
	cellBorder  = regexp.MustCompile(`\\.|\|`)
)

// page is a page as the blocks that it is made of. It knows the Markdown that these pages use: no code by indentation, no tables in lists.
type page struct {
	lines  []string
	next   int
	blocks []block
}

func parse(text string) []block {
	p := &page{lines: strings.Split(text, "\n")}
	generated := false
	for p.next < len(p.lines) {
		if p.here() == "" {
			p.next++
			continue
		}
		b := p.block()
		b.generated = generated
		p.blocks = append(p.blocks, b)
		if b.kind == aComment {
			generated = strings.HasPrefix(b.mark, "<!-- generated: ") && b.mark != "<!-- generated: end -->"
		}
	}
	return p.blocks
}

func (p *page) here() string { return strings.TrimSpace(p.lines[p.next]) }

// begins says what begins at the line at hand.
func (p *page) begins() kind {
	line := p.lines[p.next]
	switch {
	case strings.HasPrefix(p.here(), "```"):
		return aCode
	case strings.HasPrefix(line, "<!--"):
		return aComment
	case strings.HasPrefix(line, "|"):
		return aTable
	case headingLine.MatchString(line):
		return aHeading
	case itemLine.MatchString(line):
		return aList
	}
	return aParagraph
}

func (p *page) block() block {
	b := block{kind: p.begins(), line: p.next + 1}
	switch b.kind {
	case aHeading:
		m := headingLine.FindStringSubmatch(p.lines[p.next])
		b.mark, b.rows = m[1], []row{{b.line, []string{m[2]}}}
		p.next++
	case aCode:
		b.mark = p.here()
		p.next++
		b.rows = []row{{b.line, []string{p.until(func() bool { return p.here() == "```" })}}}
		p.next++
	case aComment:
		b.mark = p.until(func() bool { return p.next >= b.line && strings.HasSuffix(p.lines[p.next-1], "-->") })
	case aTable:
		for ; p.next < len(p.lines) && p.begins() == aTable; p.next++ {
			if p.next != b.line { // which only draws a line
				b.rows = append(b.rows, row{p.next + 1, cells(p.lines[p.next])})
			}
		}
	case aList:
		b.rows = p.items()
	case aParagraph:
		b.rows = []row{{b.line, []string{p.until(func() bool { return p.here() == "" || p.begins() != aParagraph })}}}
	}
	return b
}

// until takes lines up to one that ends the block, or to the end of the page.
func (p *page) until(end func() bool) string {
	first := p.next
	for p.next < len(p.lines) && !end() {
		p.next++
	}
	return strings.Join(p.lines[first:p.next], "\n")
}

// items takes a list with all that is in it; empty lines may stand between items.
func (p *page) items() []row {
	var rows []row
	for p.next < len(p.lines) {
		if m := itemLine.FindStringSubmatch(p.lines[p.next]); m != nil {
			mark := "-"
			if strings.HasSuffix(m[2], ".") {
				mark = "1."
			}
			rows = append(rows, row{p.next + 1, []string{m[1] + mark, m[3]}})
			p.next++
			continue
		}
		switch {
		case p.here() == "" && p.next+1 < len(p.lines) && itemLine.MatchString(p.lines[p.next+1]):
		case p.here() != "" && p.begins() == aParagraph:
			rows[len(rows)-1].cells[1] += "\n" + p.here()
		default:
			return rows
		}
		p.next++
	}
	return rows
}

// cells cuts a row of a table at its borders; a border behind a backslash is text.
func cells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var list []string
	begin := 0
	for _, at := range cellBorder.FindAllStringIndex(line, -1) {
		if at[1] == at[0]+1 {
			list = append(list, strings.TrimSpace(line[begin:at[0]]))
			begin = at[1]
		}
	}
	return append(list, strings.TrimSpace(line[begin:]))
}

func (b block) String() string {
	switch b.kind {
	case aHeading:
		return fmt.Sprintf("%q", b.mark+" "+b.rows[0].cells[0])
	case aCode, aComment:
		return fmt.Sprintf("the %s %q", b.kind, b.mark)
	case aList, aTable, aParagraph:
	}
	return "a " + string(b.kind)
}
