package option

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is one setting. Make it with one of the constructors, which bind it to a variable.
type Option struct {
	Name    string
	Type    string // for people: "duration", "list of text", "jsonl | raw"
	Default string // for people; empty when there is none
	Meaning string // one or a few sentences

	Required bool
	Secret   bool    // never shown; may be read from a file
	Group    *Group  // of an option that is itself a mapping
	OneOf    []Group // of an option that is a mapping with one entry, which names the group
	decode   func(Value)
}

// Group is a mapping of options.
type Group struct {
	Name    string
	Meaning string
	Options []*Option
	// Check, when set, looks at options together, after all were decoded.
	Check func(*Checker)
}

// Require makes the option one that must be given.
func (o *Option) Require() *Option {
	o.Required, o.Default = true, ""
	return o
}

// Hide makes the option a secret.
func (o *Option) Hide() *Option {
	o.Secret, o.Default = true, ""
	o.Type += " (secret), or {file: path}"
	return o
}

// Shown replaces the default that people see.
func (o *Option) Shown(text string) *Option {
	o.Default = text
	return o
}

// Custom returns an option with a form of its own. decode reports problems at the value.
func Custom(name, form, shown, meaning string, decode func(Value)) *Option {
	return &Option{Name: name, Type: form, Default: shown, Meaning: meaning, decode: decode}
}

// scalar returns an option whose value is one text. parse says what is wrong with it in words that follow the quoted value.
func scalar[T any](name, form string, into *T, shown, meaning string, parse func(string) (T, error)) *Option {
	o := Custom(name, form, shown, meaning, nil)
	o.decode = func(v Value) {
		text, ok := v.secretText(o, form)
		if !ok {
			return
		}
		value, err := parse(text)
		if err != nil {
			v.Problem("%s %v", v.quoted(text), err)
			return
		}
		*into = value
	}
	return o
}

// Text returns an option for text that is not empty.
func Text(name string, into *string, meaning string) *Option {
	return scalar(name, "text", into, *into, meaning, func(s string) (string, error) {
		if s == "" {
			return "", fmt.Errorf("is empty")
		}
		return s, nil
	})
}

// Flag returns an option that is true or false.
func Flag(name string, into *bool, meaning string) *Option {
	return scalar(name, "true | false", into, strconv.FormatBool(*into), meaning, func(s string) (bool, error) {
		switch s {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, fmt.Errorf("is not true or false")
	})
}

// Int returns an option for a whole number from low to high.
func Int[T ~int | ~int64 | ~int32](name string, into *T, low, high T, meaning string) *Option {
	return scalar(name, "number", into, strconv.FormatInt(int64(*into), 10), meaning, func(s string) (T, error) {
		n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("is not a whole number")
		}
		if n < int64(low) || n > int64(high) {
			return 0, fmt.Errorf("is not in the range %d to %d", low, high)
		}
		return T(n), nil
	})
}

// Number returns an option for a number of at least low.
func Number(name string, into *float64, low float64, meaning string) *Option {
	return scalar(name, "number", into, strconv.FormatFloat(*into, 'g', -1, 64), meaning, func(s string) (float64, error) {
		f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
		if err != nil || f != f {
			return 0, fmt.Errorf("is not a number")
		}
		if f < low || f > 1e300 {
			return 0, fmt.Errorf("is less than %g, or infinite", low)
		}
		return f, nil
	})
}

// Duration returns an option for a time span of at least low.
func Duration(name string, into *time.Duration, low time.Duration, meaning string) *Option {
	return scalar(name, "duration", into, FormatDuration(*into), meaning, func(s string) (time.Duration, error) {
		d, err := ParseDuration(s)
		if err == nil && d < low {
			err = fmt.Errorf("is less than %s", FormatDuration(low))
		}
		return d, err
	})
}

// ParseDuration reads what time.ParseDuration reads, and says in words how to write one.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if _, number := strconv.ParseFloat(s, 64); number == nil {
		return 0, fmt.Errorf("has no unit (for example %ss; units are ms, s, m, h)", s)
	}
	return 0, fmt.Errorf("is not a duration (for example 500ms, 5s, 1m30s)")
}

// FormatDuration is the shortest way to write d: 5m, not 5m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size returns an option for a number of bytes from low to high.
func Size[T ~int | ~int64](name string, into *T, low, high T, meaning string) *Option {
	return scalar(name, "size", into, FormatSize(int64(*into)), meaning, func(s string) (T, error) {
		n, err := ParseSize(s)
		if err == nil && (n < int64(low) || n > int64(high)) {
			err = fmt.Errorf("is not in the range %s to %s", FormatSize(int64(low)), FormatSize(int64(high)))
		}
		return T(n), err
	})
}

var sizeUnits = []struct {
	name string
	size int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// ParseSize reads a number of bytes, with a unit or without: 512KiB, 4 MiB, 10MB, 65536.
func ParseSize(s string) (int64, error) {
	digits, unit := s, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			digits, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, "_", ""), 10, 64)
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("is not a size (for example 65536, 512KiB, 4MiB, 10MB)")
	case n > (1<<62)/unit:
		return 0, fmt.Errorf("is too large for a size")
	}
	return n * unit, nil
}

// FormatSize writes n with the largest unit that divides it.
func FormatSize(n int64) string {
	for _, u := range slices.Backward(sizeUnits[:4]) {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// Named is one of the allowed values of a [Choice].
type Named[T any] struct {
	Name  string
	Value T
}

// Choice returns an option whose value is one of a few. The default is the allowed one that *into equals.
func Choice[T comparable](name string, into *T, meaning string, allowed ...Named[T]) *Option {
	var list []string
	shown := ""
	for _, a := range allowed {
		list = append(list, a.Name)
		if a.Value == *into {
			shown = cmp.Or(shown, a.Name)
		}
	}
	return scalar(name, strings.Join(list, " | "), into, shown, meaning, func(s string) (T, error) {
		for _, a := range allowed {
			if a.Name == s {
				return a.Value, nil
			}
		}
		var none T
		return none, fmt.Errorf("is not a known %s (%s)", strings.ReplaceAll(name, "_", " "), choices(s, list))
	})
}

// Words returns a [Choice] of values that are their own names.
func Words[T ~string](name string, into *T, meaning string, allowed ...T) *Option {
	var list []Named[T]
	for _, a := range allowed {
		list = append(list, Named[T]{string(a), a})
	}
	return Choice(name, into, meaning, list...)
}

// Texts returns an option for a list of texts that are not empty.
func Texts(name string, into *[]string, meaning string) *Option {
	const form = "list of text"
	return Custom(name, form, strings.Join(*into, ", "), meaning, func(v Value) {
		const want = `a list (for example ["a", "b"])`
		if !v.IsList() && !v.IsMapping() && !v.IsNull() {
			v.Problem("%s is not a list (write [%s])", v.quoted(v.node.Value), v.quoted(v.node.Value))
			return
		}
		list := []string{}
		for _, item := range v.List(want) {
			text, ok := item.Text("text")
			if ok && text == "" {
				item.Problem(`"" is empty`)
			}
			list = append(list, text)
		}
		*into = list
	})
}

// Pattern returns an option for text that matches re. want says in words what that is.
func Pattern(name string, into *string, re *regexp.Regexp, want, meaning string) *Option {
	return scalar(name, "text", into, *into, meaning, func(s string) (string, error) {
		if !re.MatchString(s) {
			return "", fmt.Errorf("is not %s", want)
		}
		return s, nil
	})
}
