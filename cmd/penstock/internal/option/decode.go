package option

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Input is what [Decode] reads.
type Input struct {
	File string // name for positions
	Data []byte
	// Overrides are "key.path=value", applied in order before decoding; the value is YAML.
	Overrides []string
	// Lookup finds environment variables.
	Lookup func(name string) (value string, ok bool)
}

// Document says where things stand in a decoded job file.
type Document struct {
	positions map[string]Position
	variables map[string][]string
	secrets   map[string]bool
}

// Secret reports that the value at a path is a secret, or holds one.
func (d *Document) Secret(path string) bool {
	for p := range d.secrets {
		if within(p, path) {
			return true
		}
	}
	return false
}

// within reports that p is path or below it.
func within(p, path string) bool {
	rest, ok := strings.CutPrefix(p, path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Position of the value at a path of names, or of the closest mapping around it that is in the file.
func (d *Document) Position(path string) (Position, bool) {
	for {
		if p, ok := d.positions[path]; ok {
			return p, true
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return Position{}, false
		}
		path = path[:i]
	}
}

// Variables are the environment variables that the value at a path, or anything in it, was made of, sorted.
func (d *Document) Variables(path string) []string {
	var all []string
	for p, used := range d.variables {
		if within(p, path) {
			all = append(all, used...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Decode reads a document into the variables that the group's options are bound to. The error is a [Problems] with
// everything that is wrong. The document is there also then, as far as it could be read.
func Decode(in Input, group Group) (*Document, error) {
	d := &decoder{
		file: in.File, lookup: in.Lookup, origins: map[*yaml.Node]string{},
		Document: Document{positions: map[string]Position{}, variables: map[string][]string{}, secrets: map[string]bool{}},
	}
	if root := d.parse(in); root != nil {
		for _, o := range in.Overrides {
			d.override(root, o)
		}
		group.decode(Value{decoder: d, node: root})
	}
	if len(d.problems) > 0 {
		d.problems.sort()
		return &d.Document, d.problems
	}
	return &d.Document, nil
}

type decoder struct {
	Document
	file     string
	lookup   func(string) (string, bool)
	origins  map[*yaml.Node]string // nodes that come from an override
	problems Problems
}

func (d *decoder) position(n *yaml.Node) Position {
	if o, ok := d.origins[n]; ok {
		return Position{Override: o}
	}
	return Position{File: d.file, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

func (d *decoder) report(n *yaml.Node, path, text string) {
	d.problems = append(d.problems, Problem{Position: d.position(n), Field: path, Text: text})
}

// parse returns the mapping that the document consists of, or nil after reporting why there is none.
func (d *decoder) parse(in Input) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(in.Data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Line: 1, Column: 1}}}
	case err != nil:
		line, text := syntaxError(err)
		d.problems = append(d.problems, Problem{Position: Position{File: d.file, Line: line, Column: 1}, Text: text})
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d.report(root, "", "a job file is a mapping (job: ..., source: ..., sink: ..., checkpoint: ...)")
		return nil
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		d.report(&second, "", "a job file holds one document, and here another begins")
	}
	return root
}

// The parser tells the line of a syntax error only in its text. When that text changes the error is shown whole, in line 1.
var syntaxPattern = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

func syntaxError(err error) (line int, text string) {
	m := syntaxPattern.FindStringSubmatch(err.Error())
	if m == nil {
		return 1, "is not YAML: " + err.Error()
	}
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		line = 1
	}
	return line, "is not YAML: " + m[2]
}

// override puts a value into the tree, making mappings on the way.
func (d *decoder) override(root *yaml.Node, argument string) {
	path, text, found := strings.Cut(argument, "=")
	shown := path
	if path == "" {
		shown = argument
	}
	fail := func(format string, args ...any) {
		d.problems = append(d.problems, Problem{Position: Position{Override: shown}, Text: fmt.Sprintf(format, args...)})
	}
	if !found || path == "" {
		fail("want key.path=value, for example source.kafka.start=latest")
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		_, why := syntaxError(err)
		fail("the value %s", why)
		return
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	if len(doc.Content) > 0 {
		value = doc.Content[0]
	}
	d.mark(value, path)
	at := root
	names := strings.Split(path, ".")
	for i, name := range names {
		last := i == len(names)-1
		if at.Kind == yaml.AliasNode {
			at = at.Alias
		}
		if at.Kind == yaml.ScalarNode && at.ShortTag() == "!!null" {
			*at = yaml.Node{Kind: yaml.MappingNode, Line: at.Line, Column: at.Column}
		}
		if at.Kind != yaml.MappingNode || name == "" {
			fail("%q does not lead to an option: %s is not a mapping", path, strings.Join(names[:i], "."))
			return
		}
		at = d.entry(at, name, path, last, value)
	}
}

// entry returns the value under a name; the last name gets the override's value.
func (d *decoder) entry(mapping *yaml.Node, name, path string, last bool, value *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != name {
			continue
		}
		if last {
			mapping.Content[i+1] = value
			d.origins[mapping.Content[i]] = path
		}
		return mapping.Content[i+1]
	}
	if !last {
		value = &yaml.Node{Kind: yaml.MappingNode}
		d.origins[value] = path
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: name}
	d.origins[key] = path
	mapping.Content = append(mapping.Content, key, value)
	return value
}

// mark remembers that a node and what is in it come from an override.
func (d *decoder) mark(n *yaml.Node, path string) {
	d.origins[n] = path
	for _, c := range n.Content {
		d.mark(c, path)
	}
}
