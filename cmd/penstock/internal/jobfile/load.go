package jobfile

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/catalog"
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/sdk"
)

// File is a job file that was read and found good.
type File struct {
	Path     string
	Document *option.Document
	Job      engine.Job
	Bounded  bool // the job ends by itself
	Source   catalog.Source
	Sink     catalog.Sink
}

// Request says what to load.
type Request struct {
	Path      string
	Overrides []string // "key.path=value"
	Lookup    func(name string) (string, bool)
	Catalog   catalog.Catalog
}

// maxBytes bounds what is read as a job file: more is a mistake.
const maxBytes = 1 << 20

// Load reads a job file. What is wrong with its content is an [option.Problems]; any other error is about reading it. It
// connects to nothing.
func Load(r Request) (*File, error) {
	info, err := os.Stat(r.Path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Size() > maxBytes {
		return nil, fmt.Errorf("%s is no job file: it is a directory, or larger than %s", r.Path, option.FormatSize(maxBytes))
	}
	data, err := os.ReadFile(r.Path)
	if err != nil {
		return nil, err
	}
	b := newBuilder(r.Catalog)
	doc, err := option.Decode(option.Input{File: r.Path, Data: data, Overrides: r.Overrides, Lookup: r.Lookup}, b.group())
	if err != nil {
		return nil, err
	}
	return b.file(r.Path, doc)
}

// builder is the job while it is decoded.
type builder struct {
	catalog catalog.Catalog
	job     engine.Job
	options engine.Options

	source      catalog.Source
	buildSource func() (catalog.Built, error)
	sink        catalog.Sink
	buildSink   func() (sdk.Sink, error)
}

func newBuilder(c catalog.Catalog) *builder {
	return &builder{
		catalog: c,
		options: engine.DefaultOptions(),
		job:     engine.Job{Parallelism: 1, Checkpoint: engine.Checkpoint{Interval: engine.DefaultInterval, Keep: engine.DefaultKeep}},
	}
}

// file puts the job together. The checks of the engine and the connectors come last; they find nothing that decoding should
// have found, and what they do find has no place in the file.
func (b *builder) file(path string, doc *option.Document) (*File, error) {
	source, err := b.buildSource()
	if err != nil {
		return nil, fmt.Errorf("%s: source: %w", path, err)
	}
	sink, err := b.buildSink()
	if err != nil {
		return nil, fmt.Errorf("%s: sink: %w", path, err)
	}
	b.job.Source, b.job.Sink, b.job.Options = source.Source, sink, &b.options
	if err := b.job.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c, ok := sink.(intervalChecker); ok {
		if err := c.CheckInterval(b.job.Checkpoint.Interval); err != nil {
			at, _ := doc.Position("sink." + b.sink.Name)
			return nil, option.Problems{{Position: at, Field: "sink." + b.sink.Name, Text: err.Error()}}
		}
	}
	return &File{Path: path, Document: doc, Job: b.job, Bounded: source.Bounded, Source: b.source, Sink: b.sink}, nil
}

// intervalChecker is a sink that works with some checkpoint intervals only.
type intervalChecker interface {
	CheckInterval(interval time.Duration) error
}

// Where says which place of the file an error of the running job is most probably about: the path of the option, its
// position, and the environment variables its value came from.
func (f *File) Where(err error) (path string, at option.Position, variables []string, ok bool) {
	for _, side := range []struct {
		prefix string
		blame  func(error) string
	}{{"source." + f.Source.Name, f.Source.Blame}, {"sink." + f.Sink.Name, f.Sink.Blame}} {
		if side.blame == nil {
			continue
		}
		if name := side.blame(err); name != "" {
			path = side.prefix + "." + name
			at, ok = f.Document.Position(path)
			return path, at, f.Document.Variables(path), ok
		}
	}
	_, isDir := errors.AsType[*checkpoint.DirError](err)
	if isDir || errors.Is(err, checkpoint.ErrLocked) || errors.Is(err, checkpoint.ErrOtherJob) {
		at, ok = f.Document.Position(stateDir)
		return stateDir, at, f.Document.Variables(stateDir), ok
	}
	return "", option.Position{}, nil, false
}

const stateDir = "checkpoint.dir"
