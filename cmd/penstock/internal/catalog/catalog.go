// Package catalog lists the connectors that the command knows, with the options of each.
//
// A catalog is a value: the command makes one with [Shipped] and hands it down; a program that embeds the command's
// packages can add to it.
package catalog

import (
	"io"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/inspect"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/runtime/connector"
	"github.com/penstock-dev/penstock/sdk"
)

// Source is a kind of source.
type Source struct {
	Name      string
	Summary   string
	Guarantee string
	// New makes a fresh configuration: its options, and build, which makes the source after they were decoded without problem.
	New func() (options option.Group, build func() (Built, error))
	// Blame names the option that an error of a running job is most probably about, or returns "". Nil knows none.
	Blame func(err error) string
	// Lineage shows the splits of an enumerator's state by descent, where they have one; finished ended with the same checkpoint. Nil shows none.
	Lineage func(state sdk.VersionedBytes, finished []sdk.SplitID) ([]inspect.Descent, error)
}

// Built is a source made from its options.
type Built struct {
	Source  connector.Source
	Bounded bool // it ends by itself
}

// Sink is a kind of sink.
type Sink struct {
	Name      string
	Summary   string
	Guarantee string
	New       func() (options option.Group, build func() (sdk.Sink, error))
	// Blame names the option that an error of a running job is most probably about.
	Blame func(err error) string
}

// Catalog is what a job file can name.
type Catalog struct {
	Sources []Source
	Sinks   []Sink
}

// Shipped returns the connectors of this repository. The stdout sink prints to out.
func Shipped(out io.Writer) Catalog {
	return Catalog{
		Sources: []Source{kafkaSource(), kinesisSource(), fakeSource()},
		Sinks:   []Sink{fileSink(), kafkaSink(), stdoutSink(out), blackholeSink()},
	}
}

// Source finds a source by name.
func (c Catalog) Source(name string) (Source, bool) {
	for _, s := range c.Sources {
		if s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}
