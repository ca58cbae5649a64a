package option

import (
	"fmt"
	"iter"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value is one node of the document while it is decoded.
type Value struct {
	decoder *decoder
	node    *yaml.Node
	key     *yaml.Node // the name it stands under, nil for the document and list items
	path    string
	secret  bool
}

// Problem reports something that is wrong with the value.
func (v Value) Problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if used := v.decoder.variables[v.path]; len(used) > 0 {
		text += fmt.Sprintf(" (the value comes from ${%s})", strings.Join(used, "}, ${"))
	}
	v.decoder.report(v.node, v.path, text)
}

// quoted is the value as it may be shown.
func (v Value) quoted(text string) string {
	if v.secret {
		return "the secret"
	}
	if len(text) > 100 {
		text = text[:100] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// IsMapping and IsList tell what the value is; anything else is a scalar.
func (v Value) IsMapping() bool { return v.node.Kind == yaml.MappingNode }

// IsList reports a list.
func (v Value) IsList() bool { return v.node.Kind == yaml.SequenceNode }

// IsNull reports that nothing, or null, was written.
func (v Value) IsNull() bool { return v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null" }

// Text returns a scalar with environment variables put in. ok is false, and the problem reported, when there is none. want is
// what to write instead, for the report.
func (v Value) Text(want string) (text string, ok bool) {
	switch {
	case v.IsMapping():
		v.Problem("is a mapping, want %s", want)
		return "", false
	case v.IsList():
		v.Problem("is a list, want %s", want)
		return "", false
	case v.IsNull():
		v.Problem("has no value, want %s", want)
		return "", false
	}
	text, used, err := expand(v.node.Value, v.decoder.lookup)
	if err != nil {
		v.decoder.report(v.node, v.path, err.Error())
		return "", false
	}
	if len(used) > 0 {
		v.decoder.variables[v.path] = used
	}
	return text, true
}

// List yields the items of a list. A value that is none is reported.
func (v Value) List(want string) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if !v.IsList() {
			v.Problem("is not a list, want %s", want)
			return
		}
		for i, item := range v.node.Content {
			if !yield(i, v.child(nil, item, fmt.Sprintf("%s[%d]", v.path, i))) {
				return
			}
		}
	}
}

// Mapping yields the entries of a mapping. A value that is none, and names that stand there twice, are reported; null is
// an empty mapping.
func (v Value) Mapping(want string) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.IsNull() {
			return
		}
		if !v.IsMapping() {
			v.Problem("is not a mapping, want %s", want)
			return
		}
		seen := map[string]*yaml.Node{}
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			key := v.node.Content[i]
			entry := v.child(key, v.node.Content[i+1], join(v.path, key.Value))
			if key.Kind != yaml.ScalarNode {
				v.decoder.report(key, v.path, "a name must be plain text")
				continue
			}
			if first := seen[key.Value]; first != nil {
				v.decoder.report(key, entry.path, fmt.Sprintf("is there twice, first in line %d", first.Line))
				continue
			}
			seen[key.Value] = key
			if !yield(key.Value, entry) {
				return
			}
		}
	}
}

// ProblemAtName reports something that is wrong with the name the value stands under.
func (v Value) ProblemAtName(format string, args ...any) {
	at := v.key
	if at == nil {
		at = v.node
	}
	v.decoder.report(at, v.path, fmt.Sprintf(format, args...))
}

func (v Value) child(key, node *yaml.Node, path string) Value {
	for range maxAliases {
		if node.Kind != yaml.AliasNode {
			break
		}
		node = node.Alias
	}
	c := Value{decoder: v.decoder, node: node, key: key, path: path, secret: v.secret}
	if key != v.key || node != v.node {
		v.decoder.positions[path] = v.decoder.position(node)
	}
	return c
}

// maxAliases bounds how many aliases are followed in a row; the parser makes no chains.
const maxAliases = 8

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
