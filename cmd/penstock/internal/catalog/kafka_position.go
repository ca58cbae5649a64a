package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

const positionForms = "{timestamp: 2026-01-02T03:04:05Z}, {offsets: {topic: {0: 17}}}, {committed: {group: name}}"

// positionKinds are the names of a mapping's entry.
var positionKinds = []string{"timestamp", "offsets", "committed"}

// position is earliest, latest, or a mapping with one entry. A stop has no earliest.
func position(name string, into *kafka.Position, shown, meaning string) *option.Option {
	words := []string{"earliest", "latest"}
	form := " | {timestamp: time} | {offsets: {topic: {partition: offset}}} | {committed: {group: name, fallback: earliest | latest | fail}}"
	if name == "stop" {
		words = words[1:]
		form = strings.Replace(form, "earliest | ", "", 1)
	}
	form = strings.Join(words, " | ") + form
	return option.Custom(name, form, shown, meaning, func(v option.Value) {
		if !v.IsMapping() {
			symbolic(v, name, words, into)
			return
		}
		count := 0
		for kind, entry := range v.Mapping("") {
			if count++; count > 1 {
				entry.ProblemAtName("a %s has one entry, and there is another before this one", name)
				continue
			}
			switch kind {
			case "timestamp":
				timestamp(entry, into)
			case "offsets":
				offsets(entry, into)
			case "committed":
				committed(entry, words, into)
			default:
				entry.ProblemAtName("is not a %s (%s%s)", name, strings.Join(positionKinds, ", "), guess(kind, positionKinds))
			}
		}
		if count == 0 {
			v.Problem("is empty, want one of %s", positionForms)
		}
	})
}

func symbolic(v option.Value, name string, words []string, into *kafka.Position) {
	text, ok := v.Text(words[0] + ", or one of " + positionForms)
	if !ok {
		return
	}
	switch text {
	case "latest":
		*into = kafka.Latest()
	case words[0]:
		*into = kafka.Earliest()
	default:
		list := words[0]
		if len(words) > 1 {
			list += ", " + words[1]
		}
		v.Problem("%q is not a %s (%s, %s%s)", text, name, list, positionForms, guess(text, words))
	}
}

func guess(text string, words []string) string {
	if s := option.Suggest(text, words); s != "" {
		return "; did you mean " + strconv.Quote(s) + "?"
	}
	return ""
}

func timestamp(v option.Value, into *kafka.Position) {
	text, ok := v.Text("a time")
	if !ok {
		return
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			*into = kafka.Timestamp(t)
			return
		}
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= 0 {
		*into = kafka.Timestamp(time.UnixMilli(ms))
		return
	}
	v.Problem("%q is not a time (for example 2026-01-02T03:04:05Z, 2026-01-02, or milliseconds since 1970)", text)
}

func offsets(v option.Value, into *kafka.Position) {
	const want = "offsets by topic and partition, for example {orders: {0: 17}}"
	all := map[string]map[int32]int64{}
	for topic, entry := range v.Mapping(want) {
		all[topic] = map[int32]int64{}
		for partition, at := range entry.Mapping("offsets by partition, for example {0: 17}") {
			p, err := strconv.ParseInt(partition, 10, 32)
			if err != nil || p < 0 {
				at.ProblemAtName("%q is not a partition number", partition)
				continue
			}
			text, ok := at.Text("an offset")
			if !ok {
				continue
			}
			o, err := strconv.ParseInt(text, 10, 64)
			if err != nil || o < 0 {
				at.Problem("%q is not an offset", text)
				continue
			}
			all[topic][int32(p)] = o
		}
	}
	if len(all) == 0 {
		v.Problem("names no topic, want %s", want)
	}
	*into = kafka.Offsets(all)
}

// committed is a group and what to do with partitions for which it has no offset.
func committed(v option.Value, words []string, into *kafka.Position) {
	const want = "a group and a fallback, for example {group: billing, fallback: earliest}"
	group, fallback := "", "fail"
	for name, entry := range v.Mapping(want) {
		switch name {
		case "group":
			group, _ = entry.Text("the name of a consumer group")
		case "fallback":
			fallback, _ = entry.Text("a fallback")
		default:
			entry.ProblemAtName("unknown field (group, fallback%s)", guess(name, []string{"group", "fallback"}))
		}
	}
	if group == "" {
		v.Problem("names no group, want %s", want)
		return
	}
	otherwise := kafka.Position{}
	switch allowed := append([]string{"fail"}, words...); {
	case !slices.Contains(allowed, fallback):
		v.Problem("fallback: %q is not one of %s%s", fallback, strings.Join(allowed, ", "), guess(fallback, allowed))
		return
	case fallback == "earliest":
		otherwise = kafka.Earliest()
	case fallback == "latest":
		otherwise = kafka.Latest()
	}
	*into = kafka.Committed(group, otherwise)
}
