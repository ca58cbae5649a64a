package kinesis

import (
	"log/slog"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// meters are a reader's instruments.
type meters struct {
	behindMin, behindMax, inFlight                         sdk.Gauge
	calls, throttled, expired, failed, resubscribed, moved sdk.Counter
	dropped, broken                                        sdk.Counter
}

func newMeters(m sdk.Metrics) meters {
	return meters{
		behindMin:    m.Gauge("millis_behind_min", "ms", "How far the reader's shard that is furthest on is behind the end of the stream, as the service says; absent while no shard is known."),
		behindMax:    m.Gauge("millis_behind_max", "ms", "How far the reader's shard that is furthest back is behind the end of the stream; absent while that is not known of all of them."),
		inFlight:     m.Gauge("in_flight_bytes", "By", "What all readers of this stream in the process have fetched and not emitted."),
		calls:        m.Counter("requests", "{request}", "Requests for records."),
		throttled:    m.Counter("throttled_requests", "{request}", "Requests that the service refused because of a limit."),
		expired:      m.Counter("expired_iterators", "{iterator}", "Iterators that had expired and were made anew."),
		failed:       m.Counter("failed_requests", "{request}", "Requests that failed for other reasons and are tried again."),
		resubscribed: m.Counter("subscriptions", "{subscription}", "Subscriptions to shards, with enhanced fan-out."),
		moved:        m.Counter("lost_positions", "{position}", "Positions of which the records had expired, where the policy is to go on."),
		dropped:      m.Counter("filtered_aggregates", "{record}", "Aggregated records that were dropped because of a hash key of another shard."),
		broken:       m.Counter("damaged_aggregates", "{record}", "Records that look like aggregates and cannot be read as one; they are passed on as they are."),
	}
}

// logEvery keeps a state that comes and goes from filling the log.
const logEvery = 10 * time.Second

// limitedLog logs a warning of a kind now and then, with how many were left out.
type limitedLog struct {
	log *slog.Logger

	mu     sync.Mutex
	last   map[string]time.Time // by message: there are a handful
	hidden map[string]int
}

func newLimitedLog(log *slog.Logger) *limitedLog {
	return &limitedLog{log: log, last: make(map[string]time.Time), hidden: make(map[string]int)}
}

func (l *limitedLog) warn(message string, args ...any) {
	now := time.Now()
	l.mu.Lock()
	if now.Sub(l.last[message]) < logEvery {
		l.hidden[message]++
		l.mu.Unlock()
		return
	}
	n := l.hidden[message]
	l.last[message], l.hidden[message] = now, 0
	l.mu.Unlock()
	if n > 0 {
		args = append(args, "left_out", n)
	}
	l.log.Warn(message, args...)
}
