package option

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME}, ${NAME:-text} and $$ in text. A $ before anything else stands for itself. used are the variables
// that the result depends on.
func expand(text string, lookup func(string) (string, bool)) (result string, used []string, err error) {
	if !strings.Contains(text, "$") {
		return text, nil, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), used, nil
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inner, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", used, fmt.Errorf("%q has no closing brace (write $$ for a plain $)", "$"+rest)
			}
			name, fallback, hasFallback := strings.Cut(inner, ":-")
			if !isVariable(name) {
				return "", used, fmt.Errorf("${%s} names no environment variable (${NAME} or ${NAME:-default}; write $$ for a plain $)", inner)
			}
			value, set := lookup(name)
			switch {
			case set && (value != "" || !hasFallback):
				used = append(used, name)
			case hasFallback:
				value = fallback
			default:
				return "", used, fmt.Errorf("environment variable %s is not set (set it, or give a default: ${%s:-default})", name, name)
			}
			b.WriteString(value)
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

func isVariable(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
