package cli_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "rewrite the generated parts of docs/en/job-file.md")

const docs = "../../../../docs/en/"

func readDoc(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocumentedOptions keeps docs/en/job-file.md equal to what `penstock connectors --markdown` prints. -update rewrites it.
func TestDocumentedOptions(t *testing.T) {
	code, all, _ := do(t, "connectors", "--markdown")
	if code != 0 {
		t.Fatalf("code %d", code)
	}
	parts := map[string]string{}
	for page := range strings.SplitSeq(strings.TrimPrefix(all, "## "), "\n## ") {
		title, body, _ := strings.Cut(page, "\n")
		switch title {
		case "job file job", "section runtime":
			parts[title] = "\n" + body[strings.Index(body, "| option"):]
		default:
			parts["connectors"] += "\n### " + title + "\n" + strings.TrimRight(body, "\n") + "\n"
		}
	}
	file := docs + "job-file.md"
	old := readDoc(t, file)
	text := old
	for part, body := range parts {
		begin, end := "<!-- generated: "+part+" -->\n", "<!-- generated: end -->"
		head, rest, ok := strings.Cut(text, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no generated part %q", file, part)
		}
		text = head + begin + strings.TrimRight(body, "\n") + "\n\n" + end + tail
	}
	switch {
	case text == old:
	case *updateDocs:
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date: go test ./cmd/penstock/internal/cli -run DocumentedOptions -update", file)
	}
}

// block is a fenced block of a page: its language, the word behind that, and its lines.
type block struct{ language, name, body string }

var fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([^\n]+))?\n(.*?)^```$")

func blocks(text string) []block {
	var list []block
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		list = append(list, block{m[1], m[2], m[3]})
	}
	return list
}

// pages are those whose job files, commands and sessions are tried.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(docs + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(list, "../../../../README.md")
}

// TestDocumentedSections: a block of YAML is a job file, or sections of one to which the others are added here. A block named
// bad is to be refused.
func TestDocumentedSections(t *testing.T) {
	rest := map[string]string{
		"job": "job: docs\n", "source": "source: {fake: {}}\n", "sink": "sink: {stdout: {}}\n", "checkpoint": "checkpoint: {dir: state}\n",
	}
	seen, files := 0, secrets(t)
	for _, page := range pages(t) {
		for _, b := range blocks(readDoc(t, page)) {
			if b.language != "yaml" || strings.HasPrefix(b.name, "bad") || strings.HasPrefix(b.name, "option of ") {
				continue
			}
			seen++
			text := files.Replace(b.body)
			for name, section := range rest {
				if !regexp.MustCompile("(?m)^" + name + ":").MatchString(text) {
					text += section
				}
			}
			accept(t, page, text)
		}
	}
	if seen < 10 {
		t.Errorf("only %d blocks", seen)
	}
}

// secrets makes the files that pages name: a replacer of their folders.
func secrets(t *testing.T) *strings.Replacer {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kafka", "p", "token", "ca.pem", "me.pem", "me.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return strings.NewReplacer("/run/secrets/", dir+"/", "/etc/kafka/", dir+"/")
}

func accept(t *testing.T, page, job string) {
	t.Helper()
	c := newCommand(t)
	c.environment = map[string]string{"KAFKA_BROKERS": "127.0.0.1:9092", "KAFKA_USER": "u", "KAFKA_PASSWORD": "p"}
	if code := c.start("validate", write(t, "job.yaml", job)).end(); code != 0 {
		t.Errorf("%s: exit code %d for\n%s\n%s", page, code, job, c.err)
	}
}

// TestDocumentedOptionLines: in a block of YAML named option of kafka, each line is one option of that source, an alternative to those
// beside it.
func TestDocumentedOptionLines(t *testing.T) {
	required := map[string]string{"kafka": `brokers: ["127.0.0.1:9092"], topics: [orders]`}
	seen, files := 0, secrets(t)
	for _, page := range pages(t) {
		for _, b := range blocks(readDoc(t, page)) {
			source, ok := strings.CutPrefix(b.name, "option of ")
			if !ok {
				continue
			}
			for line := range strings.Lines(files.Replace(b.body)) {
				line, _, _ = strings.Cut(line, "  #")
				if strings.HasPrefix(line, "sasl:") {
					line += ", tls: {}" // which most logins want
				}
				seen++
				accept(t, page, "job: docs\nsource: {"+source+": {"+required[source]+", "+strings.TrimSpace(line)+"}}\nsink: {stdout: {}}\ncheckpoint: {dir: state}\n")
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d options", seen)
	}
}

// TestDocumentedCommands: the commands and flags of blocks of shell exist.
func TestDocumentedCommands(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		for _, b := range blocks(readDoc(t, page)) {
			if b.language != "sh" && b.language != "console" {
				continue
			}
			for line := range strings.Lines(b.body) {
				line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " #")
				command, args, _ := strings.Cut(line, " ")
				if command != "penstock" && command != "bin/penstock" {
					continue
				}
				seen++
				words := arguments(args)
				code, stdout, stderr := do(t, append(words, "--help")...)
				usage := "penstock " + words[0] + " "
				if words[0] == "checkpoints" || words[0] == "dev" {
					usage += words[1] + " "
				}
				if code != 0 || !strings.Contains(stdout, usage) {
					t.Errorf("%s: %s: exit code %d, %s", page, line, code, stderr)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d commands", seen)
	}
}

// arguments splits a command line at spaces outside of single and double quotes.
func arguments(line string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(line, -1) {
		list = append(list, strings.NewReplacer("'", "", `"`, "").Replace(m))
	}
	return list
}

// TestDocumentedSessions runs the blocks of console of each page one after the other in one folder: a line that begins with $
// is a command, those behind it are what it prints, where ... stands for anything. A named block of YAML is a file.
func TestDocumentedSessions(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		text := readDoc(t, page)
		t.Run(filepath.Base(page), func(t *testing.T) {
			text := text
			if w, ok := worlds[filepath.Base(page)]; ok {
				text = w(t).Replace(text)
			}
			t.Chdir(t.TempDir())
			for _, b := range blocks(text) {
				switch {
				case b.language == "yaml" && b.name != "":
					if err := os.WriteFile(strings.TrimPrefix(b.name, "bad "), []byte(b.body), 0o600); err != nil {
						t.Fatal(err)
					}
				case b.language == "console":
					seen++
					session(t, b.body)
				}
			}
		})
	}
	if seen < 3 {
		t.Errorf("only %d sessions", seen)
	}
}

// session runs the commands of a block, which are penstock, echo $? for its exit code, and cp of a folder.
func session(t *testing.T, text string) {
	t.Helper()
	code := 0
	for step := range strings.SplitSeq("\n"+text, "\n$ ") {
		line, want, _ := strings.Cut(step, "\n")
		words := arguments(line)
		var got string
		switch {
		case len(words) == 0:
			continue
		case words[0] == "penstock":
			var stdout, stderr string
			code, stdout, stderr = do(t, words[1:]...)
			got = stderr + stdout
		case line == "echo $?":
			got = strconv.Itoa(code)
		case words[0] == "cp" && len(words) == 4 && words[1] == "-r":
			if err := os.CopyFS(words[3], os.DirFS(words[2])); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("the test cannot run %q", line)
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), `\.\.\.`, `.*`)
		if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(strings.TrimSpace(got)) {
			t.Errorf("%s prints\n%s\nwant\n%s", line, got, want)
		}
	}
}
