package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

type logFlags struct {
	level  string
	format string
}

func (f *logFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.level, "log-level", "warn", "least level that is logged: debug, info, warn, error")
	cmd.Flags().StringVar(&f.format, "log-format", "console", "how logs are written: console, json")
}

// logger writes whole lines to out.
func (f *logFlags) logger(out io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(f.level)
	if err != nil {
		return nil, fmt.Errorf("penstock: --log-level %q is not a level (debug, info, warn, error)", f.level)
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch f.format {
	case "console":
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		config.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(config)
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	default:
		return nil, fmt.Errorf("penstock: --log-format %q is not a format (console, json)", f.format)
	}
	// No stack traces: they are for those who read the source, who can ask for debug.
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(out), level)), nil
}
