package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/sdk"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// guides are the pages whose Go code is quoted from files that are compiled and run.
var guides = []string{"en/embed.md", "en/write-a-connector.md"}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestGoSnippets: each piece of a quoted program stands so in a file; "// ..." leaves something out.
func TestGoSnippets(t *testing.T) {
	var sources []string
	for _, pattern := range []string{
		"*_test.go", "../examples/embed/*.go", "../examples/connector/feed/*.go", "../examples/connector/cursor/*.go",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, f := range files {
			sources = append(sources, flat(read(t, f)))
		}
	}
	for _, page := range guides {
		blocks := goBlock.FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s quotes nothing", page)
		}
		for _, b := range blocks {
			if !slices.ContainsFunc(sources, func(s string) bool { return quotes(s, b[1]) }) {
				t.Errorf("%s: no file has\n%s", page, b[1])
			}
		}
	}
}

// flat takes away indentation, which a quotation may change.
func flat(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

func quotes(source, block string) bool {
	for piece := range strings.SplitSeq(flat(block), "\n// ...\n") {
		if !strings.HasPrefix(piece, "\n") {
			piece = "\n" + piece
		}
		if !strings.HasSuffix(piece, "\n") {
			piece += "\n"
		}
		_, after, found := strings.Cut(source, piece)
		if !found {
			return false
		}
		source = "\n" + after
	}
	return true
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks: what a page refers to in this repository is there, headings included.
func TestLinks(t *testing.T) {
	pages := []string{"../README.md"}
	for _, pattern := range []string{"*.md", "en/*.md", "zh/*.md", "adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				if slices.Contains(awaited, originalOf(target)) {
					continue
				}
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: %s: there is no such heading", page, m[1])
			}
		}
	}
}

var (
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInIDs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are made of headings as GitHub makes them.
func anchors(text string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(notInIDs.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

var metric = regexp.MustCompile(`penstock_[a-z_]+[a-z]`)

// TestMetricNames: a metric that a page speaks of is in the list of metrics.
func TestMetricNames(t *testing.T) {
	known := metric.FindAllString(read(t, "en/metrics.md"), -1)
	for _, page := range []string{"en/operations.md", "en/guarantees.md", "en/embed.md", "en/write-a-connector.md", "en/job-file.md"} {
		for _, name := range metric.FindAllString(read(t, page), -1) {
			if base, _, _ := strings.Cut(name, "_bucket"); !slices.Contains(known, base) {
				t.Errorf("%s: there is no metric %s", page, name)
			}
		}
	}
}

// TestErrorsAreExplained: the page for operators has every named error that they may meet, under its own words.
func TestErrorsAreExplained(t *testing.T) {
	page := read(t, "en/operations.md")
	for _, err := range []error{
		checkpoint.ErrLocked, checkpoint.ErrOtherJob, checkpoint.ErrUncertain, sdk.ErrIncompatibleState, sdk.ErrCorrupt,
		engine.ErrLane, engine.ErrSavepoint, reader.ErrStuck, coordinator.ErrStuck,
		file.ErrDataMissing, file.ErrDataChanged, file.ErrExists, file.ErrOtherRun, file.ErrManifest,
	} {
		if !strings.Contains(page, "`"+err.Error()+"`") {
			t.Errorf("operations.md says nothing about %q", err)
		}
	}
	for state := checkpoint.Truncated; state < checkpoint.Unfinished; state++ {
		if !strings.Contains(page, "`"+state.String()+"`") {
			t.Errorf("operations.md says nothing about a file that is %s", state)
		}
	}
}

// TestSettingsAreReal: a runtime option that a page speaks of exists.
func TestSettingsAreReal(t *testing.T) {
	known := map[string]bool{}
	for _, s := range engine.Settings(new(engine.DefaultOptions())) {
		known[s.Name] = true
	}
	for _, page := range []string{"en/operations.md", "en/guarantees.md", "en/job-file.md"} {
		for _, m := range regexp.MustCompile("`runtime\\.([a-z_]+)").FindAllStringSubmatch(read(t, page), -1) {
			if !known[m[1]] {
				t.Errorf("%s: there is no option runtime.%s", page, m[1])
			}
		}
	}
}

func TestQuotes(t *testing.T) {
	source := flat("func a() {\n\tone()\n\ttwo()\n\tthree()\n}\n")
	for block, want := range map[string]bool{
		"one()\ntwo()\n": true, "\tone()\n\t// ...\n\tthree()\n": true, "one()\nthree()\n": false, "three()\n// ...\none()\n": false, "on\n": false,
	} {
		if quotes(source, block) != want {
			t.Errorf("%q: want %t", block, want)
		}
	}
	if a := anchors("# A `b`, c-d\n## E\n"); !slices.Equal(a, []string{"a-b-c-d", "e"}) {
		t.Errorf("anchors %q", a)
	}
}
