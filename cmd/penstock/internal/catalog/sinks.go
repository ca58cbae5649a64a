package catalog

import (
	"errors"
	"io"
	"math"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/blackhole"
	"github.com/penstock-dev/penstock/connectors/file"
	"github.com/penstock-dev/penstock/connectors/stdout"
	"github.com/penstock-dev/penstock/sdk"
)

func fileSink() Sink {
	return Sink{
		Name: "file", Summary: "Writes records into files that become visible once committed.", Guarantee: "exactly once",
		Blame: func(err error) string {
			if _, ok := errors.AsType[*file.Error](err); ok {
				return "path"
			}
			return ""
		},
		New: func() (option.Group, func() (sdk.Sink, error)) {
			s := file.Sink{Format: file.JSONLines, Separator: "\n", Compression: file.None}
			return option.Group{Options: []*option.Option{
				option.Text("path", &s.Path, "Directory to write to; it is made when missing. Relative to where the command runs.").Require(),
				option.Words("format", &s.Format, "What a file holds: one JSON object a line, or the bare values.", file.JSONLines, file.Raw),
				option.Text("separator", &s.Separator, "What follows each value in raw format.").Shown(`"\n"`),
				option.Words("compression", &s.Compression, "How whole files are compressed.", file.None, file.Gzip, file.Zstd),
				option.Size("roll_bytes", &s.RollBytes, 0, math.MaxInt64, "Start another file once one holds this much before compression; 0 is one file per task and checkpoint.").Shown("0 (off)"),
				option.Duration("roll_interval", &s.RollInterval, 0, "Start another file when one is this old. Has an effect only when shorter than the checkpoint interval.").Shown("0 (off)"),
				option.Flag("repeat", &s.Repeat, "Whether a run may begin that writes again what is committed in the path already: one that starts anew, or from an older checkpoint."),
			}}, func() (sdk.Sink, error) { return s, nil }
		},
	}
}

func stdoutSink(out io.Writer) Sink {
	return Sink{
		Name: "stdout", Summary: "Prints records.", Guarantee: "at least once",
		New: func() (option.Group, func() (sdk.Sink, error)) {
			format := stdout.JSONLines
			return option.Group{Options: []*option.Option{
				option.Words("format", &format, "What is printed: one JSON object a line, or the bare values.", stdout.JSONLines, stdout.Raw),
			}}, func() (sdk.Sink, error) { return stdout.New(out, format), nil }
		},
	}
}

func blackholeSink() Sink {
	return Sink{
		Name: "blackhole", Summary: "Counts records and drops them, for measuring a source.", Guarantee: "at least once",
		New: func() (option.Group, func() (sdk.Sink, error)) {
			check := blackhole.Off
			return option.Group{Options: []*option.Option{
				option.Words("check", &check, "Fail when offsets of a split do not grow (order), or not by one (continuity).", blackhole.Off, blackhole.Order, blackhole.Continuity),
			}}, func() (sdk.Sink, error) { return blackhole.New(check), nil }
		},
	}
}
