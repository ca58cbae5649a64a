package file

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/penstock-dev/penstock/sdk"
)

// Format is what a file holds.
type Format string

// Formats.
const (
	JSONLines Format = "jsonl" // one JSON object a line, see package jsonl
	Raw       Format = "raw"   // the value's bytes and a separator
)

// Compression is applied to whole files.
type Compression string

// Compressions.
const (
	None Compression = "none"
	Gzip Compression = "gzip"
	Zstd Compression = "zstd"
)

// Sink describes the files. The zero value but for Path is ready to use.
type Sink struct {
	// Path is the directory; it is made when missing. Several jobs may share one.
	Path string
	// Format is JSONLines when empty.
	Format Format
	// Separator follows each value of the Raw format; "\n" when empty.
	Separator string
	// Compression is None when empty.
	Compression Compression
	// RollBytes starts another file once this many bytes, before compression, are in one; 0 is no limit.
	RollBytes int64
	// RollInterval starts another file when a batch arrives this long after a file's first; 0 is no limit. A file never
	// spans two checkpoints, so an interval longer than that of the checkpoints has no effect.
	RollInterval time.Duration
	// Repeat lets a run begin that reads again what is committed here already: one that starts anew, or from an older
	// checkpoint. Without it such a run is refused with [ErrOtherRun].
	Repeat bool
}

var _ sdk.Sink = Sink{}

// Name implements [sdk.Sink].
func (Sink) Name() string { return "file" }

// NewWriter implements [sdk.Sink].
func (s Sink) NewWriter(ctx sdk.WriterContext) (sdk.Writer, error) {
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	if err := checkJobName(ctx.Job()); err != nil {
		return nil, sdk.Fatal(err)
	}
	return newWriter(s, ctx, openRoot, time.Now), nil
}

func (s Sink) withDefaults() Sink {
	if s.Format == "" {
		s.Format = JSONLines
	}
	if s.Separator == "" {
		s.Separator = "\n"
	}
	if s.Compression == "" {
		s.Compression = None
	}
	return s
}

func (s Sink) validate() error {
	switch {
	case s.Path == "":
		return fmt.Errorf("file sink: path is empty: name the directory to write to")
	case s.Format != JSONLines && s.Format != Raw:
		return fmt.Errorf("file sink: format %q is not known (jsonl, raw)", s.Format)
	case s.Compression != None && s.Compression != Gzip && s.Compression != Zstd:
		return fmt.Errorf("file sink: compression %q is not known (none, gzip, zstd)", s.Compression)
	case s.RollBytes < 0:
		return fmt.Errorf("file sink: roll_bytes %d is negative: use 0 for no limit", s.RollBytes)
	case s.RollInterval < 0:
		return fmt.Errorf("file sink: roll_interval %v is negative: use 0 for no limit", s.RollInterval)
	}
	return nil
}

// extension of final names.
func (s Sink) extension() string {
	ext := ".jsonl"
	if s.Format == Raw {
		ext = ".txt"
	}
	switch s.Compression {
	case Gzip:
		return ext + ".gz"
	case Zstd:
		return ext + ".zst"
	case None:
	}
	return ext
}

// maxJobName leaves room for the rest of a file name within the 255 bytes that file systems allow.
const maxJobName = 150

// checkJobName refuses what cannot begin a visible file name.
func checkJobName(job string) error {
	bad := func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }
	if job == "" || len(job) > maxJobName || job[0] == '.' || strings.ContainsFunc(job, bad) {
		return fmt.Errorf("file sink: job name %q cannot begin a file name: use at most %d bytes, no slash, no leading dot", job, maxJobName)
	}
	return nil
}
