package option

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Section returns an option that is itself a mapping.
func Section(name, meaning string, group Group) *Option {
	o := Custom(name, "mapping", "", meaning, func(v Value) { group.decode(v) })
	o.Group = &group
	return o
}

// Variant is one of the possibilities of [OneOf]: its group, and what to do when it is the one that was chosen and decoded
// without a problem.
type Variant struct {
	Group  Group
	Chosen func()
}

// OneOf returns an option that is a mapping with exactly one entry, whose name says what the entry holds.
func OneOf(name, meaning string, variants ...Variant) *Option {
	byName := map[string]Variant{}
	var groups []Group
	for _, v := range variants {
		byName[v.Group.Name] = v
		groups = append(groups, v.Group)
	}
	allowed := slices.Sorted(maps.Keys(byName))
	o := Custom(name, strings.Join(allowed, " | "), "", meaning, func(v Value) {
		if !v.IsMapping() {
			v.Problem("names no %s (%s), for example %s: {%s: {...}}", name, strings.Join(allowed, ", "), name, allowed[0])
			return
		}
		count := 0
		for kind, entry := range v.Mapping("") {
			if count++; count > 1 {
				entry.ProblemAtName("a job has one %s, and there is another before this one", name)
				continue
			}
			variant, ok := byName[kind]
			if !ok {
				entry.ProblemAtName("unknown %s (%s)", name, choices(kind, allowed))
				continue
			}
			if variant.Group.decode(entry) && variant.Chosen != nil {
				variant.Chosen()
			}
		}
		if count == 0 {
			v.Problem("names no %s (%s)", name, strings.Join(allowed, ", "))
		}
	})
	o.OneOf = groups
	return o
}

// decode reads a mapping and reports whether it was without a problem.
func (g *Group) decode(v Value) bool {
	before := len(v.decoder.problems)
	check := &Checker{group: v, options: g.Options, given: map[string]Value{}, failed: map[string]bool{}}
	for name, entry := range v.Mapping("a mapping of options") {
		i := slices.IndexFunc(g.Options, func(o *Option) bool { return o.Name == name })
		if i < 0 {
			entry.ProblemAtName("unknown field%s", orList(didYouMean(name, names(g.Options)), names(g.Options)))
			continue
		}
		o := g.Options[i]
		check.given[name] = entry
		entry.secret = o.Secret
		if o.Secret {
			v.decoder.secrets[entry.path] = true
		}
		sofar := len(v.decoder.problems)
		o.decode(entry)
		check.failed[name] = len(v.decoder.problems) > sofar
	}
	if !v.IsMapping() && !v.IsNull() {
		return false
	}
	for _, o := range g.Options {
		if o.Required && !check.Given(o.Name) {
			v.ProblemAtName("%s is missing: %s", o.Name, firstSentence(o.Meaning))
			check.failed[o.Name] = true
		}
	}
	if g.Check != nil {
		g.Check(check)
	}
	return len(v.decoder.problems) == before
}

// orList falls back to listing the names when none is close and they are few.
func orList(suggestion string, list []string) string {
	const few = 8
	if suggestion != "" || len(list) == 0 {
		return suggestion
	}
	if len(list) > few {
		return fmt.Sprintf(" (known are %s, ...)", strings.Join(list[:few], ", "))
	}
	return fmt.Sprintf(" (known are %s)", strings.Join(list, ", "))
}

func firstSentence(s string) string {
	first, _, _ := strings.Cut(s, ". ")
	return strings.TrimSuffix(first, ".")
}

// Checker looks at the options of a group together.
type Checker struct {
	group   Value
	options []*Option
	given   map[string]Value
	failed  map[string]bool // has a problem already, and its variable is not what the file says
}

// Given reports that the option is in the file.
func (c *Checker) Given(name string) bool {
	_, ok := c.given[name]
	return ok
}

// Problem reports something that is wrong with the named option: at its place, or at the group's when it is not in the
// file. An option that has a problem already gets no second one.
func (c *Checker) Problem(name, format string, args ...any) {
	if c.failed[name] {
		return
	}
	if v, ok := c.given[name]; ok {
		v.Problem(format, args...)
		return
	}
	c.group.child(c.group.key, c.group.node, join(c.group.path, name)).ProblemAtName(format, args...)
}

// Report reports an error of a configuration's own validation, which may be several joined ones. A text that begins with an
// option's name and a colon is a problem of that option, any other one of the group.
func (c *Checker) Report(err error) {
	for _, leaf := range leaves(err) {
		text := leaf.Error()
		name, rest, _ := strings.Cut(text, ":")
		if slices.ContainsFunc(c.options, func(o *Option) bool { return o.Name == name }) {
			c.Problem(name, "%s", strings.TrimSpace(rest))
			continue
		}
		c.group.ProblemAtName("%s", text)
	}
}

// leaves takes joined errors apart, also below a prefix.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	for e := err; e != nil; {
		switch u := e.(type) { //nolint:errorlint // walks the chain itself
		case interface{ Unwrap() []error }:
			var all []error
			for _, one := range u.Unwrap() {
				all = append(all, leaves(one)...)
			}
			return all
		case interface{ Unwrap() error }:
			e = u.Unwrap()
		default:
			e = nil
		}
	}
	return []error{err}
}

// maxSecretFile bounds what is read as a secret: a password or a key, not a mistake.
const maxSecretFile = 64 << 10

// secretText is Text, which for secrets also reads {file: path}.
func (v Value) secretText(o *Option, want string) (string, bool) {
	if !o.Secret || !v.IsMapping() {
		return v.Text(want)
	}
	var path string
	file := Group{Options: []*Option{Text("file", &path, "Path of the file that holds the secret.").Require()}}
	v.secret = false
	if !file.decode(v) {
		return "", false
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxSecretFile {
		err = fmt.Errorf("it has %d bytes, a secret has at most %d", info.Size(), maxSecretFile)
	}
	if err != nil {
		v.Problem("cannot read the secret from %q: %v", path, err)
		return "", false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		v.Problem("cannot read the secret from %q: %v", path, err)
		return "", false
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), true
}
