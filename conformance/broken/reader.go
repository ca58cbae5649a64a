package broken

import (
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// reader is a reader without package base. Each split has a goroutine that fetches it; everything else belongs to the loop.
type reader struct {
	*Source
	ctx     sdk.ReaderContext
	splits  []*open
	at      []Split // where they are, in the same order
	late    []Split // for a reader that starts them late
	had     bool    // a split
	noMore  bool
	refused bool
	woken   atomic.Bool
	large   atomic.Pointer[sdk.Output] // for one that emits from elsewhere
	buffer  []byte
	known   map[sdk.CheckpointID]map[sdk.SplitID]int
	fetched sdk.Counter

	life   context.Context //nolint:containedctx // of its goroutines
	cancel context.CancelFunc
	all    sync.WaitGroup
	leak   chan struct{}

	wake struct { // what Wakeup reaches
		sync.Mutex
		ctx    context.Context //nolint:containedctx // of the running fetches
		cancel context.CancelFunc
	}
}

// open is a split that is being read.
type open struct {
	id      sdk.SplitID
	slot    int // how many splits the reader had been given before
	chunks  chan chunk
	rest    []string // of the chunk that is being emitted
	ending  bool     // it ends after rest
	paused  bool
	fetched atomic.Int64 // the next position to fetch
}

const chunkSize = 10

// chunk is what one fetch brought.
type chunk struct {
	values []string
	end    bool
	err    error
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	r := &reader{Source: s, ctx: ctx, known: map[sdk.CheckpointID]map[sdk.SplitID]int{}}
	if !s.has(NeedsOpen) {
		r.life, r.cancel = context.WithCancel(context.Background())
	}
	return r, nil
}

func (r *reader) Open(context.Context) error {
	if r.has(NeedsOpen) {
		r.life, r.cancel = context.WithCancel(context.Background())
	}
	if !r.has(CountsNothing) {
		r.fetched = r.ctx.Metrics().Counter("fetched", "{value}", "Values that were fetched.")
	}
	if r.has(SendsUndeclared) {
		r.ctx.SendEvent(sdk.Event{Kind: "hello"})
	}
	if r.has(LeavesGoroutine) {
		r.leak = make(chan struct{})
		go func() { <-r.leak }()
	}
	if r.has(RingsForNothing) {
		r.all.Go(func() {
			for wait(r.life, 10*time.Millisecond) == nil {
				r.ctx.NotifyAvailable()
			}
		})
	}
	return nil
}

func (r *reader) AddSplits(splits []Split) error {
	if r.has(ReliesOnOrder) {
		positions := slices.Clone(splits)
		slices.SortFunc(splits, func(a, b Split) int { return a.Part - b.Part })
		for i := range splits {
			splits[i].Next = positions[i].Next
		}
	}
	idle := len(r.splits) > 0
	for _, s := range splits {
		switch {
		case !r.has(TakesSplitsTwice) && r.find(s.SplitID()) >= 0:
		case r.has(KeepsToOwner) && s.Owner != 0 && s.Owner != int(r.ctx.Reader())+1:
		case r.has(StartsSplitsLate) && idle:
			r.late = append(r.late, s)
		default:
			r.start(s)
		}
	}
	return nil
}

func (r *reader) find(id sdk.SplitID) int {
	return slices.IndexFunc(r.splits, func(o *open) bool { return o.id == id })
}

func (r *reader) start(s Split) {
	r.had = true
	if r.has(KeepsToOwner) {
		s.Owner = int(r.ctx.Reader()) + 1
	}
	if r.has(NamesBySplit) {
		r.ctx.Metrics().Counter(fmt.Sprintf("fetched_%d", s.Part), "{value}", "Values of one part.")
	}
	o := &open{id: s.SplitID(), slot: len(r.splits), chunks: make(chan chunk, 2)}
	o.fetched.Store(int64(r.from(s)))
	r.splits = append(r.splits, o)
	r.at = append(r.at, s)
	r.all.Go(func() { r.fetch(o, s) })
}

// from answers where to fetch from: at the split's position, unless the source knows better.
func (r *reader) from(s Split) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.has(TrustsProcess):
		return max(s.Next, r.seen[s.Part])
	case r.has(TrustsSystem):
		return max(s.Next, r.system.progress()[s.Part])
	default:
		return s.Next
	}
}

// Poll implements [sdk.Reader].
func (r *reader) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	if r.refused {
		return sdk.NothingAvailable, nil
	}
	r.large.Store(&out)
	if r.has(DropsLabels) {
		pprof.SetGoroutineLabels(context.Background())
	}
	if r.has(WaitsForSplit) && r.ctx.Reader() > 0 && !r.had {
		_ = wait(r.life, time.Minute)
	}
	if r.woken.Swap(false) && r.has(ForgetsToRing) {
		return sdk.NothingAvailable, nil
	}
	for i := 0; i < len(r.splits); i++ {
		o := r.splits[i]
		if o.paused {
			continue
		}
		for {
			more, err := r.next(o)
			if err != nil {
				return sdk.NothingAvailable, err
			}
			if !more {
				break
			}
			if r.emit(turn, out, o, i) {
				return r.interrupted(), nil
			}
		}
		if o.ending && len(o.rest) == 0 {
			r.end(out, i)
			i--
		}
	}
	return r.status(), nil
}

// next makes sure that o has something to emit, if there is anything.
func (r *reader) next(o *open) (bool, error) {
	if len(o.rest) > 0 {
		return true, nil
	}
	var c chunk
	select {
	case c = <-o.chunks:
	default:
		if !r.has(WaitsInPoll) {
			return false, nil
		}
		select {
		case c = <-o.chunks:
		case <-time.After(10 * time.Millisecond):
			return false, nil
		}
	}
	r.startLate()
	o.rest, o.ending = c.values, o.ending || c.end
	return len(o.rest) > 0, c.err
}

func (r *reader) startLate() {
	for _, s := range r.late {
		r.start(s)
	}
	r.late = nil
}

// emit emits one value, and reports that the turn is over.
func (r *reader) emit(turn *sdk.Turn, out sdk.Output, o *open, i int) (stop bool) {
	value := []byte(o.rest[0])
	if r.over(turn, int64(len(value)), r.at[i].Next) {
		return true
	}
	if r.has(ReusesBuffers) {
		r.buffer = append(r.buffer[:0], value...)
		value = r.buffer
	}
	rec := sdk.Record{Value: value, Split: o.id, Offset: int64(r.at[i].Next)}
	if r.has(HidesSplit) {
		rec.Split = ""
	}
	if !out.Emit(rec) && !r.has(IgnoresRefusal) {
		r.refused = true
		return true
	}
	o.rest = o.rest[1:]
	r.at[i].Next++
	return false
}

// over reports that the turn ends before a value of that size.
func (r *reader) over(turn *sdk.Turn, size int64, number int) bool {
	if r.woken.Load() && !r.has(DeafToWakeup) {
		return true
	}
	spent := turn.Records() == 0 || turn.Bytes() == 0
	switch {
	case r.has(IgnoresRecords):
		return turn.Bytes() == 0 || turn.Records() > 0 && turn.ShouldYield()
	case r.has(KeepsLargeRecords):
		return turn.ShouldYield() || size > turn.Bytes()
	case r.has(LooksOncePerChunk):
		return spent || number%100 == 0 && turn.ShouldYield()
	case r.has(IgnoresPreemption):
		return spent
	default:
		return turn.ShouldYield()
	}
}

// end takes a split that has ended out.
func (r *reader) end(out sdk.Output, i int) {
	final := r.at[i]
	r.splits = slices.Delete(r.splits, i, i+1)
	r.at = slices.Delete(r.at, i, i+1)
	if !r.has(HidesFinished) {
		out.FinishSplit(final)
	}
}

// interrupted is the status of a turn that has ended with something left.
func (r *reader) interrupted() sdk.PollStatus {
	if r.has(EndsEarly) && r.noMore && !slices.ContainsFunc(r.splits, func(o *open) bool { return !o.ending }) {
		return sdk.EndOfInput
	}
	return sdk.MoreAvailable
}

func (r *reader) status() sdk.PollStatus {
	if r.has(NeverEndsIdle) && !r.had {
		return sdk.NothingAvailable
	}
	if (r.noMore || r.has(EndsUntold)) && len(r.splits)+len(r.late) == 0 {
		return sdk.EndOfInput
	}
	return sdk.NothingAvailable
}

// NoMoreSplits implements [sdk.NoMoreSplitsHandler].
func (r *reader) NoMoreSplits() error {
	r.noMore = true
	return nil
}

// PauseOrResume implements [sdk.Pauser].
func (r *reader) PauseOrResume(pause, resume []sdk.SplitID) error {
	if r.has(IgnoresPause) {
		return nil
	}
	r.pause(pause, true)
	r.pause(resume, false)
	return nil
}

func (r *reader) pause(ids []sdk.SplitID, paused bool) {
	for _, id := range ids {
		if i := r.find(id); i >= 0 {
			r.splits[i].paused = paused
		}
	}
}

// Close implements [sdk.Reader].
func (r *reader) Close() error {
	r.cancel()
	r.all.Wait()
	return nil
}
