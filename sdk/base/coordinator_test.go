package base

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// desk is a working EnumeratorContext that runs nothing by itself: a test decides when a call returns and how the time
// goes. It writes down what the enumerator asks for.
type desk struct {
	parallelism int
	readers     []sdk.ReaderID
	now         time.Duration
	calls       []call
	tasks       map[string]task
	room        int  // splits that Assign still takes
	checkpoints bool // the job takes some
	failure     error
	log         []string
}

type call struct {
	key  string
	work func(context.Context) (any, error)
	done func(any, error)
}

type task struct {
	due time.Duration
	run func()
}

func newDesk(parallelism int) *desk {
	return &desk{parallelism: parallelism, tasks: make(map[string]task), room: 1 << 30, checkpoints: true}
}

func (d *desk) say(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }

func (d *desk) Call(key string, work func(context.Context) (any, error), done func(any, error), o sdk.CallOptions) {
	if o.OnFailure == sdk.FailCoordinator {
		_, d.failure = work(context.Background())
		d.say("fail epoch: %v", d.failure)
		return
	}
	d.calls = append(d.calls, call{key, work, done})
	d.say("call %s", key)
}

func (d *desk) Schedule(key string, delay time.Duration, run func()) {
	d.tasks[key] = task{d.now + delay, run}
	d.say("schedule %s in %s", key, delay)
}

func (d *desk) Cancel(key string) {
	delete(d.tasks, key)
	d.calls = slices.DeleteFunc(d.calls, func(c call) bool { return c.key == key })
}

// finish runs the oldest call.
func (d *desk) finish() bool {
	if len(d.calls) == 0 {
		return false
	}
	c := d.calls[0]
	d.calls = d.calls[1:]
	c.done(c.work(context.Background()))
	return true
}

// pass lets time go by, running what falls due, in order.
func (d *desk) pass(by time.Duration) {
	end := d.now + by
	for {
		key := ""
		for k, t := range d.tasks {
			if t.due <= end && (key == "" || t.due < d.tasks[key].due) {
				key = k
			}
		}
		if key == "" {
			d.now = end
			return
		}
		t := d.tasks[key]
		delete(d.tasks, key)
		d.now = t.due
		t.run()
	}
}

func (d *desk) Parallelism() int        { return d.parallelism }
func (d *desk) Readers() []sdk.ReaderID { return d.readers }
func (d *desk) Logger() *slog.Logger    { return slog.New(slog.DiscardHandler) }
func (d *desk) Metrics() sdk.Metrics    { return sdk.DiscardMetrics }

func (d *desk) Assign(reader sdk.ReaderID, splits []at) error {
	if !slices.Contains(d.readers, reader) {
		return fmt.Errorf("reader %d is not registered", reader)
	}
	if len(splits) > d.room {
		d.say("reader %d: refused %s", reader, list(splits))
		return fmt.Errorf("tracker: %w", sdk.ErrBackpressure)
	}
	d.room -= len(splits)
	d.say("reader %d: %s", reader, list(splits))
	return nil
}

func (d *desk) NoMoreSplits(reader sdk.ReaderID) error {
	d.say("reader %d: no more splits", reader)
	return nil
}

func (d *desk) SendEvent(sdk.ReaderID, sdk.Event) bool { return true }

func (d *desk) RequestCheckpoint() bool {
	d.say("request checkpoint")
	return d.checkpoints
}

func (d *desk) SplitCodec() sdk.Codec[at] { return atCodec{} }

// register adds a reader as an engine does, before the enumerator hears of it.
func (d *desk) register(reader sdk.ReaderID) {
	if !slices.Contains(d.readers, reader) {
		d.readers = append(d.readers, reader)
		slices.Sort(d.readers)
	}
}

// list prints splits as name@position, long lists shortened.
func list(splits []at) string {
	if n := len(splits); n > 10 {
		return fmt.Sprintf("%s ... %s (%d splits)", list(splits[:1]), list(splits[n-1:]), n)
	}
	words := make([]string, len(splits))
	for i, s := range splits {
		words[i] = fmt.Sprintf("%s@%d", s.Name, s.Next)
	}
	return strings.Join(words, " ")
}

// atCodec is compact and strict: the position, a colon, the name.
type atCodec struct{}

func (atCodec) Version() int                { return 1 }
func (atCodec) Encode(s at) ([]byte, error) { return fmt.Appendf(nil, "%d:%s", s.Next, s.Name), nil }

func (atCodec) Decode(version int, data []byte) (at, error) {
	if version != 1 {
		return at{}, sdk.UnknownVersion("test split", version, 1)
	}
	var s at
	next, name, ok := strings.Cut(string(data), ":")
	if _, err := fmt.Sscan(next, &s.Next); !ok || err != nil || fmt.Sprint(s.Next) != next {
		return at{}, errors.Join(sdk.ErrCorrupt, err)
	}
	s.Name = name
	return s, nil
}
