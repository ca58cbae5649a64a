package jobfile

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/catalog"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/exchange"
)

// Sections describes the whole job file, for people.
func Sections(c catalog.Catalog) option.Group { return newBuilder(c).group() }

var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

const (
	maxParallelism = 4096
	minInterval    = 10 * time.Millisecond
	maxKeep        = 10_000
)

// group describes the job file, bound to the builder.
func (b *builder) group() option.Group {
	if b.job.Exchange == "" {
		b.job.Exchange = exchange.Forward
	}
	return option.Group{Options: []*option.Option{
		option.Pattern("job", &b.job.Name, jobName, "a job name (letters, digits, dot, dash and underscore, at most 100, beginning with a letter or digit)",
			"Name of the job: part of output file names, and of what a checkpoint belongs to.").Require(),
		option.Int("parallelism", &b.job.Parallelism, 1, maxParallelism, "Number of readers and of sink tasks. It may change between runs."),
		option.Words("exchange", &b.job.Exchange, "How readers and sink tasks are joined: one to one, to whoever has room, or by key.",
			exchange.Forward, exchange.Rebalance, exchange.Keyed),
		b.sourceOption().Require(),
		b.sinkOption().Require(),
		option.Section("checkpoint", "Where and how often the job's state is kept.", b.checkpoint()).Require(),
		option.Section("runtime", "The engine's own limits. The defaults suit production.", b.runtime()),
	}}
}

func (b *builder) sourceOption() *option.Option {
	var variants []option.Variant
	for _, s := range b.catalog.Sources {
		group, build := s.New()
		group.Name, group.Meaning = s.Name, s.Summary
		variants = append(variants, option.Variant{Group: group, Chosen: func() { b.source, b.buildSource = s, build }})
	}
	return option.OneOf("source", "What to read.", variants...)
}

func (b *builder) sinkOption() *option.Option {
	var variants []option.Variant
	for _, s := range b.catalog.Sinks {
		group, build := s.New()
		group.Name, group.Meaning = s.Name, s.Summary
		variants = append(variants, option.Variant{Group: group, Chosen: func() { b.sink, b.buildSink = s, build }})
	}
	return option.OneOf("sink", "Where to write.", variants...)
}

func (b *builder) checkpoint() option.Group {
	c := &b.job.Checkpoint
	return option.Group{Options: []*option.Option{
		option.Text("dir", &c.Dir, "State directory of the job; it is made when missing. Relative to where the command runs.").Require(),
		option.Duration("interval", &c.Interval, minInterval, "Time between checkpoints: what is read again after a crash, and how soon output becomes visible."),
		option.Int("keep", &c.Keep, 1, maxKeep, "Completed checkpoints that are kept. Savepoints are kept until deleted."),
	}}
}

// runtime derives the section from the engine's own list of settings.
func (b *builder) runtime() option.Group {
	var g option.Group
	for _, s := range engine.Settings(&b.options) {
		if o := setting(s); o != nil {
			g.Options = append(g.Options, o)
		}
	}
	g.Check = func(c *option.Checker) { c.Report(b.limits()) }
	return g
}

// limits are the engine's checks, each beginning with the option's name as [option.Checker.Report] wants it.
func (b *builder) limits() error {
	joined, ok := b.options.Validate().(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var all []error
	for _, err := range joined.Unwrap() {
		if o, ok := errors.AsType[*engine.OptionError](err); ok {
			err = errors.New(o.Name + ": " + o.Problem)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func setting(s engine.Setting) *option.Option {
	meaning := strings.ToUpper(s.Meaning[:1]) + s.Meaning[1:] + "."
	switch v := s.Value.(type) {
	case *int:
		return option.Int(s.Name, v, int(s.Min), math.MaxInt32, meaning)
	case *int64:
		if s.Unit == "bytes" {
			return option.Size(s.Name, v, s.Min, math.MaxInt64, meaning)
		}
		return option.Int(s.Name, v, s.Min, math.MaxInt64, meaning)
	case *time.Duration:
		return option.Duration(s.Name, v, time.Duration(s.Min), meaning)
	case *bool:
		return option.Flag(s.Name, v, meaning)
	case *string:
		return option.Words(s.Name, v, meaning, s.Allowed...)
	case *[]string:
		return option.Texts(s.Name, v, meaning)
	}
	return nil
}
