package kinesis

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// reader is the base reader, which tells the enumerator of shards that ended: their children wait for a checkpoint, and nobody else knows
// that one is worth taking.
type reader struct {
	*base.Reader[element, Split, Split]
	ctx    sdk.ReaderContext
	stream string
	lag    sdk.Gauge
	newest time.Time
	out    ends
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	if err := s.Validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	source := s.withDefaults()
	m, log := newMeters(ctx.Metrics()), newLimitedLog(ctx.Logger())
	r := &reader{ctx: ctx, stream: source.name()}
	r.out.ctx = ctx
	r.lag = ctx.Metrics().Gauge(sdk.GaugeLagSeconds, "s", "Age of the newest emitted record when it was emitted.")
	inner, err := base.NewReader(ctx, base.Config[element, Split, Split]{
		Fetcher:          func() (base.SplitReader[element, Split], error) { return source.newFetcher(m, log) },
		EmitChunk:        r.emit,
		RecordsPerSecond: source.RecordsPerSecond,
		CloseTimeout:     closeTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("kinesis: %w", err)
	}
	r.Reader = inner
	return r, nil
}

const (
	// closeTimeout bounds a close. Calls end with their context at once.
	closeTimeout = 10 * time.Second
	// connectTimeout bounds the making of a client, which reads files.
	connectTimeout = 5 * time.Second
)

// newFetcher makes what reads the shards, on its goroutine, where files may be read.
func (s Source) newFetcher(m meters, log *limitedLog) (base.SplitReader[element, Split], error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	v, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	if s.Consumer != "" {
		return newSubscriber(v, m, log), nil
	}
	return newFetcher(v, m, log), nil
}

// Poll implements [sdk.Reader].
func (r *reader) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	r.out.Output = out
	status, err := r.Reader.Poll(turn, &r.out)
	r.out.Output = nil
	if !r.newest.IsZero() {
		r.lag.Set(max(time.Since(r.newest).Seconds(), 0))
		r.newest = time.Time{}
	}
	return status, err
}

// emit hands elements over as they are, and moves the position behind the last accepted one.
func (r *reader) emit(elements []element, at *Split, out sdk.Output) (int, error) {
	accepted, _ := out.EmitView(&view{r.stream, at.SplitID(), elements}, 0) // the base sees a refusal too, and ends the turn
	if accepted == 0 {
		return 0, nil
	}
	last := &elements[accepted-1]
	if p := last.position(); p.Concrete() {
		at.Position = p
	}
	if last.move != nil && last.move.end != nil { // nothing follows an end
		at.End = last.move.end
	}
	if last.stored != nil && last.stored.ApproximateArrivalTimestamp != nil && last.stored.ApproximateArrivalTimestamp.After(r.newest) {
		r.newest = *last.stored.ApproximateArrivalTimestamp
	}
	return accepted, nil
}

// eventEnded is the event by which a reader tells of a shard that ended.
const eventEnded = "shard-ended"

// ended is the data of that event. It is a message between parts of one build, and never stored.
type ended struct {
	Shard string `json:"shard"`
	End   End    `json:"end"`
}

// ends is an output that tells of splits that finish.
type ends struct {
	sdk.Output
	ctx sdk.ReaderContext
}

// FinishSplit implements [sdk.Output]. An event that does not arrive costs time, and nothing else: the children then wait for the next
// checkpoint by interval.
func (o *ends) FinishSplit(final sdk.Split) {
	o.Output.FinishSplit(final)
	split, ok := final.(Split)
	if !ok || split.End == nil {
		return
	}
	data, err := json.Marshal(ended{split.Shard, *split.End})
	if err != nil {
		return // two texts and a number have always been JSON
	}
	o.ctx.SendEvent(sdk.Event{Kind: eventEnded, Data: sdk.VersionedBytes{Version: 1, Data: data}})
}
