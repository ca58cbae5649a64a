package option_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
)

// config is what the tests decode into: one of each kind.
type config struct {
	Name     string
	Count    int
	Share    float64
	On       bool
	Every    time.Duration
	Room     int64
	Mode     string
	List     []string
	Password string
	Inner    string
	chosen   string
}

func group(c *config) option.Group {
	return option.Group{
		Options: []*option.Option{
			option.Text("name", &c.Name, "A name. And more."),
			option.Int("count", &c.Count, 1, 10, "A count."),
			option.Number("share", &c.Share, 0, "A share."),
			option.Flag("on", &c.On, "A switch."),
			option.Duration("every", &c.Every, time.Millisecond, "A span."),
			option.Size("room", &c.Room, 0, 1<<30, "A size."),
			option.Words("mode", &c.Mode, "A mode.", "fast", "slow"),
			option.Texts("list", &c.List, "A list."),
			option.Text("password", &c.Password, "A password.").Hide(),
			option.Section("section", "A section.", option.Group{Options: []*option.Option{
				option.Text("inner", &c.Inner, "Something inside.").Require(),
			}}),
			option.OneOf("kind", "A kind.",
				option.Variant{Group: option.Group{Name: "round"}, Chosen: func() { c.chosen = "round" }},
				option.Variant{Group: option.Group{Name: "square"}, Chosen: func() { c.chosen = "square" }}),
		},
		Check: func(ck *option.Checker) {
			if ck.Given("count") && ck.Given("share") {
				ck.Problem("share", "not beside count")
			}
			if ck.Given("on") && !ck.Given("every") {
				ck.Problem("every", "needed when on")
			}
		},
	}
}

func decode(t *testing.T, text string, overrides ...string) (config, *option.Document, []string) {
	t.Helper()
	c := config{Count: 3, Every: time.Second, Mode: "slow"}
	doc, err := option.Decode(option.Input{
		File: "f.yaml", Data: []byte(text), Overrides: overrides,
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"SET": "7", "EMPTY": "", "PASSWORD": "hunter2"}[name]
			return v, ok
		},
	}, group(&c))
	var lines []string
	if problems, ok := errors.AsType[option.Problems](err); ok {
		for _, p := range problems {
			lines = append(lines, p.String())
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return c, doc, lines
}

func TestGood(t *testing.T) {
	c, doc, problems := decode(t, "name: 12\nevery: 1m30s\nroom: 4 MiB\nmode: fast\nlist: [a, \"b c\", 5]\n", "section={inner: deep}", "kind.round=", "section.inner=deeper")
	if len(problems) > 0 {
		t.Fatalf("%q", problems)
	}
	if c.Name != "12" || c.Every != 90*time.Second || c.Room != 4<<20 || c.Mode != "fast" || strings.Join(c.List, "|") != "a|b c|5" || c.Inner != "deeper" || c.chosen != "round" || c.Count != 3 {
		t.Errorf("got %+v", c)
	}
	if p, ok := doc.Position("room"); !ok || p.String() != "f.yaml:3:7" {
		t.Errorf("room is at %v", p)
	}
	if p, ok := doc.Position("section.inner"); !ok || p.String() != "--set section.inner" {
		t.Errorf("section.inner is at %v", p)
	}
	if p, ok := doc.Position("mode.below.it"); !ok || p.Line != 4 {
		t.Errorf("mode.below.it is at %v", p)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name, text string
		overrides  []string
		want       []string
	}{
		{"all at once, in order", "mdoe: fast\ncount: many\nevery: 5 parsecs\nmode: fsat\nlist: x\n", nil, []string{
			`f.yaml:1:1: mdoe: unknown field (did you mean "mode"?)`,
			`f.yaml:2:8: count: "many" is not a whole number`,
			`f.yaml:3:8: every: "5 parsecs" is not a duration (for example 500ms, 5s, 1m30s)`,
			`f.yaml:4:7: mode: "fsat" is not a known mode (fast, slow; did you mean "fast"?)`,
			`f.yaml:5:7: list: "x" is not a list (write ["x"])`,
		}},
		{"unknown without a guess", "zzzzzzzzz: 1\n", nil, []string{`f.yaml:1:1: zzzzzzzzz: unknown field (known are count, every, kind, list, mode, name, on, password, ...)`}},
		{"twice", "name: a\nname: b\n", nil, []string{"f.yaml:2:1: name: is there twice, first in line 1"}},
		{"ranges", "count: 11\nshare: -1\nevery: 0s\nroom: 2GiB\n", nil, []string{
			`f.yaml:1:8: count: "11" is not in the range 1 to 10`,
			`f.yaml:2:8: share: "-1" is less than 0, or infinite`,
			`f.yaml:3:8: every: "0s" is less than 1ms`,
			`f.yaml:4:7: room: "2GiB" is not in the range 0 to 1GiB`,
		}},
		{"units", "every: 5\nroom: 4 buckets\n", nil, []string{
			`f.yaml:1:8: every: "5" has no unit (for example 5s; units are ms, s, m, h)`,
			`f.yaml:2:7: room: "4 buckets" is not a size (for example 65536, 512KiB, 4MiB, 10MB)`,
		}},
		{"wrong shapes", "name: {a: b}\ncount: [1]\nmode:\nsection: 3\nlist: [[1]]\n", nil, []string{
			`f.yaml:1:7: name: is a mapping, want text`,
			`f.yaml:2:8: count: is a list, want number`,
			`f.yaml:3:6: mode: has no value, want fast | slow`,
			`f.yaml:4:10: section: is not a mapping, want a mapping of options`,
			`f.yaml:5:8: list[0]: is a list, want text`,
		}},
		{"missing", "section: {}\n", nil, []string{`f.yaml:1:1: section: inner is missing: Something inside`}},
		{"together", "count: 1\nshare: 2\n", nil, []string{`f.yaml:2:8: share: not beside count`}},
		{"together, not given", "on: true\n", nil, []string{`f.yaml:1:1: every: needed when on`}},
		{"one of", "kind: {roud: {}}\n", nil, []string{`f.yaml:1:8: kind.roud: unknown kind (round, square; did you mean "round"?)`}},
		{"one of, two", "kind: {round: {}, square: {}}\n", nil, []string{`f.yaml:1:19: kind.square: a job has one kind, and there is another before this one`}},
		{"one of, none", "kind: round\n", nil, []string{`f.yaml:1:7: kind: names no kind (round, square), for example kind: {round: {...}}`}},
		{"one of, inside", "kind: {round: {radius: 1}}\n", nil, []string{`f.yaml:1:16: kind.round.radius: unknown field`}},
		{"variables", "name: ${UNSET}\ncount: ${SET}0\nmode: ${\nlist: [\"${9}\"]\n", nil, []string{
			`f.yaml:1:7: name: environment variable UNSET is not set (set it, or give a default: ${UNSET:-default})`,
			`f.yaml:2:8: count: "70" is not in the range 1 to 10 (the value comes from ${SET})`,
			`f.yaml:3:7: mode: "${" has no closing brace (write $$ for a plain $)`,
			`f.yaml:4:8: list[0]: ${9} names no environment variable (${NAME} or ${NAME:-default}; write $$ for a plain $)`,
		}},
		{"syntax", "name: a\n  bad: [\n", nil, []string{`f.yaml:2:1: is not YAML: mapping values are not allowed in this context`}},
		{"a list", "- a\n", nil, []string{`f.yaml:1:1: a job file is a mapping (job: ..., source: ..., sink: ..., checkpoint: ...)`}},
		{"two documents", "name: a\n---\nname: b\n", nil, []string{`f.yaml:2:1: a job file holds one document, and here another begins`}},
		{"overrides", "name: a\n", []string{"mode=fsat", "nmae=x", "name.x=1", "count", "list=[", "=1"}, []string{
			`--set =1: want key.path=value, for example source.kafka.start=latest`,
			`--set count: want key.path=value, for example source.kafka.start=latest`,
			`--set list: the value is not YAML: did not find expected node content`,
			`--set mode: "fsat" is not a known mode (fast, slow; did you mean "fast"?)`,
			`--set name.x: "name.x" does not lead to an option: name is not a mapping`,
			`--set nmae: unknown field (did you mean "name"?)`,
		}},
		{"secret file", "password: {fil: x}\n", nil, []string{
			`f.yaml:1:1: password: file is missing: Path of the file that holds the secret`,
			`f.yaml:1:12: password.fil: unknown field (did you mean "file"?)`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, got := decode(t, c.text, c.overrides...)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestVariables(t *testing.T) {
	c, doc, problems := decode(t, "name: a${SET}b$$c$d${UNSET:-e}${EMPTY:-f}${EMPTY}\ncount: ${SET}\npassword: ${PASSWORD}\nlist: [\"${SET}\", \"${PASSWORD}\"]\n")
	if len(problems) > 0 || c.Name != "a7b$c$def" || c.Count != 7 || c.Password != "hunter2" {
		t.Errorf("got %+v, %q", c, problems)
	}
	if !doc.Secret("password") || doc.Secret("name") {
		t.Error("the password is no secret, or the name is one")
	}
	if v := doc.Variables("password"); len(v) != 1 || v[0] != "PASSWORD" {
		t.Errorf("password comes from %q", v)
	}
	if v := doc.Variables("list"); strings.Join(v, " ") != "PASSWORD SET" {
		t.Errorf("list comes from %q", v)
	}
}

func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("s3cret \r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, problems := decode(t, "password: {file: "+path+"}\n")
	if len(problems) > 0 || c.Password != "s3cret " {
		t.Errorf("got %q, %q", c.Password, problems)
	}
	if _, _, problems = decode(t, "password: {file: "+path+"x}\n"); len(problems) != 1 || !strings.Contains(problems[0], path+"x") {
		t.Errorf("got %q", problems)
	}
}

func TestEmptyDocument(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "{}"} {
		if _, _, problems := decode(t, text); len(problems) > 0 {
			t.Errorf("%q: %q", text, problems)
		}
	}
}

func TestSuggest(t *testing.T) {
	for got, want := range map[string]string{"jsno": "jsonl", "latset": "latest", "LATEST": "latest", "zzz": "", "": "", strings.Repeat("x", 1000): ""} {
		if s := option.Suggest(got, []string{"jsonl", "raw", "latest"}); s != want {
			t.Errorf("%q: %q, want %q", got, s, want)
		}
	}
}

func TestFormats(t *testing.T) {
	for d, want := range map[time.Duration]string{5 * time.Minute: "5m", 90 * time.Second: "1m30s", time.Hour: "1h", 0: "0s", 250 * time.Millisecond: "250ms"} {
		if got := option.FormatDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 1000: "1000", 1 << 10: "1KiB", 256 << 20: "256MiB", 3 << 40: "3TiB"} {
		if got := option.FormatSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
		if back, err := option.ParseSize(want); err != nil || back != n {
			t.Errorf("%q: %d, %v", want, back, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("name: &a [*a]\nkind: {round: *a}\n", "count=1")
	f.Add("<<: {a: b}\n? [x]\n: y\n", "a.b.c=[1")
	f.Fuzz(func(_ *testing.T, text, override string) {
		var c config
		_, _ = option.Decode(option.Input{File: "f", Data: []byte(text), Overrides: []string{override}, Lookup: os.LookupEnv}, group(&c))
	})
}
