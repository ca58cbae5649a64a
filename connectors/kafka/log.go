package kafka

import (
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	logBurst = 10               // lines at once
	logEvery = 10 * time.Second // for one more line
)

// limitedLog passes on a burst of lines and then a few a minute, with the number of those it held back: a broker that is gone makes
// the client warn several times a second. Safe for concurrent use.
type limitedLog struct {
	to *slog.Logger
	mu *logBudget
}

type logBudget struct {
	sync.Mutex
	left       int
	since      time.Time // of the last refill
	suppressed int
}

func newLimitedLog(to *slog.Logger) limitedLog {
	return limitedLog{to, &logBudget{left: logBurst, since: time.Now()}}
}

func (l limitedLog) info(message string, args ...any) { l.log((*slog.Logger).Info, message, args) }

func (l limitedLog) warn(message string, args ...any) { l.log((*slog.Logger).Warn, message, args) }

func (l limitedLog) error(message string, args ...any) { l.log((*slog.Logger).Error, message, args) }

func (l limitedLog) log(write func(*slog.Logger, string, ...any), message string, args []any) {
	suppressed, ok := l.mu.take(time.Now())
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed_before", suppressed)
	}
	write(l.to, message, args...)
}

// take answers whether a line may pass now and how many were held back before it.
func (b *logBudget) take(now time.Time) (suppressed int, ok bool) {
	b.Lock()
	defer b.Unlock()
	if n := int(now.Sub(b.since) / logEvery); n > 0 {
		b.left = min(b.left+n, logBurst)
		b.since = b.since.Add(time.Duration(n) * logEvery)
	}
	if b.left == 0 {
		b.suppressed++
		return 0, false
	}
	b.left--
	suppressed, b.suppressed = b.suppressed, 0
	return suppressed, true
}

// clientLog carries the client's warnings and errors, without those about connections that have a name: each attempt of each
// connection makes one or two of them, and [health] tells of the same once for each change.
type clientLog struct{ to limitedLog }

var _ kgo.Logger = clientLog{}

// Level implements [kgo.Logger].
func (clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

// Log implements [kgo.Logger].
func (c clientLog) Log(level kgo.LogLevel, message string, keyvals ...any) {
	if aboutConnection(keyvals) {
		return
	}
	switch level {
	case kgo.LogLevelError:
		c.to.error("kafka client: "+message, keyvals...)
	case kgo.LogLevelWarn:
		c.to.warn("kafka client: "+message, keyvals...)
	case kgo.LogLevelNone, kgo.LogLevelInfo, kgo.LogLevelDebug:
	}
}

// aboutConnection reports that a line names a broker and an error of the way to it.
func aboutConnection(keyvals []any) bool {
	var broker, connection bool
	for i := 0; i+1 < len(keyvals); i += 2 {
		switch value := keyvals[i+1].(type) {
		case error:
			connection = connection || troubleOf(value, "").Trouble != OtherTrouble
		default:
			broker = broker || keyvals[i] == "broker"
		}
	}
	return broker && connection
}
