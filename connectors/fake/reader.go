package fake

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Reader is the base reader with the faults that concern turns.
type Reader struct {
	*base.Reader[int64, Split, state]

	source *Source
	notify func()
	polls  int
	woken  chan struct{} // one slot: frees a stuck poll
	arena  []byte        // what the next records are written to; never again once full
	stop   chan struct{} // ends the false rings; nil when there are none
	rings  sync.WaitGroup
}

// arenaSize is how many bytes of keys and values share one allocation.
const arenaSize = 64 << 10

// state is a split on the reader loop.
type state struct {
	Split
	fault int64 // the next record at which emitting may go wrong
	view  *view // of the chunk that is being emitted
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	r := &Reader{source: s, notify: ctx.NotifyAvailable, woken: make(chan struct{}, 1)}
	cfg := base.Config[int64, Split, state]{
		Fetcher: func() (base.SplitReader[int64, Split], error) { return &fetcher{source: s}, nil },
		ToState: func(split Split) state {
			return state{Split: split, fault: s.script.nextAt(false, split.Number, split.Next)}
		},
		ToSplit:          func(st *state) Split { return st.Split },
		FetcherOf:        func(split Split) int { return split.Number % s.cfg.Fetchers },
		MaxFetchers:      s.cfg.Fetchers,
		RecordsPerSecond: s.cfg.RecordsPerSecond,
		CloseTimeout:     s.cfg.CloseTimeout,
	}
	if s.cfg.Copied {
		cfg.Emit = r.emit
	} else {
		cfg.EmitChunk = r.emitChunk
	}
	var err error
	r.Reader, err = base.NewReader(ctx, cfg)
	return r, err
}

// Open implements [sdk.Reader].
func (r *Reader) Open(ctx context.Context) error {
	if every := r.source.cfg.Faults.FalseRings; every > 0 {
		r.stop = make(chan struct{})
		r.rings.Go(func() { r.ring(every) })
	}
	return r.Reader.Open(ctx)
}

// ring lies about what is available until the reader is closed.
func (r *Reader) ring(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.notify()
		case <-r.stop:
			return
		}
	}
}

// Poll implements [sdk.Reader].
func (r *Reader) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	select {
	case <-r.woken: // meant for an earlier turn
	default:
	}
	r.polls++
	if n := r.source.cfg.Faults.EmptyTurns; n > 0 && r.polls%n == 0 {
		return sdk.MoreAvailable, nil
	}
	return r.Reader.Poll(turn, out)
}

// Wakeup implements [sdk.Reader].
func (r *Reader) Wakeup() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
	r.Reader.Wakeup()
}

// Close implements [sdk.Reader].
func (r *Reader) Close() error {
	if r.stop != nil {
		close(r.stop)
		r.rings.Wait()
		r.stop = nil
	}
	return r.Reader.Close()
}

func (r *Reader) emit(index int64, st *state, out sdk.Output) error {
	if index == st.fault {
		if err := r.suffer(st); err != nil {
			return err
		}
	}
	rec := sdk.Record{}
	fill(&rec, st.Number, index, r.payload(st.Number, index))
	if out.Emit(rec) {
		st.Next = index + 1
	}
	return nil
}

func (r *Reader) payload(split int, index int64) (p payload) {
	cfg := &r.source.cfg
	if cfg.Shared {
		return cfg.refer(r.source.keys, split, index)
	}
	if room := cfg.room(); cap(r.arena)-len(r.arena) < room {
		r.arena = make([]byte, 0, max(arenaSize, room))
	}
	p, r.arena = cfg.generate(r.arena, split, index)
	return p
}

func (r *Reader) emitChunk(elements []int64, st *state, out sdk.Output) (int, error) {
	first := elements[0]
	if first == st.fault {
		if err := r.suffer(st); err != nil {
			return 0, err
		}
	}
	if safe := st.fault - first; safe < int64(len(elements)) {
		elements = elements[:safe]
	}
	v, from := r.viewOf(st, elements)
	n, ok := out.EmitView(v, from)
	if ok {
		st.Next = first + int64(n)
	}
	return n, nil
}

// suffer does what the script says about emitting the record st.fault and looks for the next one.
func (r *Reader) suffer(st *state) error {
	at := st.fault
	for {
		fault, struck := r.source.script.strike(false, st.Number, at)
		if !struck {
			break
		}
		switch fault.Kind {
		case FailEmit:
			return fault.err()
		case PanicEmit:
			panic(fault.err())
		case StuckPoll:
			select {
			case <-r.woken:
			case <-r.source.script.released:
			}
		case DeafPoll:
			<-r.source.script.released
		case FailFetch, PanicFetch, StuckFetch, DeafFetch: // not ours
		}
	}
	st.fault = math.MaxInt64
	if at < math.MaxInt64 {
		st.fault = r.source.script.nextAt(false, st.Number, at+1)
	}
	return nil
}
