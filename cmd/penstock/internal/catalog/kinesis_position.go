package catalog

import (
	"strconv"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kinesis"
)

// streamPosition is trim_horizon, latest, or a mapping with one entry. A stop has neither a trim horizon nor sequence numbers.
func streamPosition(name string, into *kinesis.Position, shown, meaning string) *option.Option {
	words, kinds := []string{"trim_horizon", "latest"}, []string{"timestamp", "sequences"}
	form, forms := "trim_horizon | latest | {timestamp: time} | {sequences: {shard: number}}", "trim_horizon, latest, {timestamp: 2026-01-02T03:04:05Z}, {sequences: {shardId-000000000000: \"495...\"}}"
	if name == "stop" {
		words, kinds = words[1:], kinds[:1]
		form, forms = "latest | {timestamp: time}", "latest, {timestamp: 2026-01-02T03:04:05Z}"
	}
	return option.Custom(name, form, shown, meaning, func(v option.Value) {
		if !v.IsMapping() {
			text, ok := v.Text("one of " + forms)
			switch {
			case !ok:
			case text == "latest":
				*into = kinesis.Latest()
			case text == words[0]:
				*into = kinesis.TrimHorizon()
			default:
				v.Problem("%q is not a %s (%s%s)", text, name, forms, guess(text, words))
			}
			return
		}
		count := 0
		for kind, entry := range v.Mapping("") {
			switch count++; {
			case count > 1:
				entry.ProblemAtName("a %s has one entry, and there is another before this one", name)
			case kind == "timestamp":
				streamTime(entry, into)
			case kind == "sequences" && name == "start":
				streamSequences(entry, into)
			default:
				entry.ProblemAtName("is not a %s (%s%s)", name, forms, guess(kind, kinds))
			}
		}
		if count == 0 {
			v.Problem("is empty, want one of %s", forms)
		}
	})
}

func streamTime(v option.Value, into *kinesis.Position) {
	text, ok := v.Text("a time")
	if !ok {
		return
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			*into = kinesis.Timestamp(t)
			return
		}
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 {
		*into = kinesis.Timestamp(time.UnixMilli(ms))
		return
	}
	v.Problem("%q is not a time (for example 2026-01-02T03:04:05Z, 2026-01-02, or milliseconds since 1970)", text)
}

func streamSequences(v option.Value, into *kinesis.Position) {
	all := map[string]string{}
	for shard, entry := range v.Mapping(`sequence numbers by shard, for example {shardId-000000000000: "495..."}`) {
		if text, ok := entry.Text("a sequence number"); ok {
			all[shard] = text
		}
	}
	*into = kinesis.Sequences(all)
}
