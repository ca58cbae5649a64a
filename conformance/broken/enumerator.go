package broken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// interval is between two discoveries, and before a failed one is tried again.
const interval = time.Minute

// state is what an enumerator's snapshot holds.
type state struct {
	Listed  bool    // a discovery has been done
	Known   []int   // parts
	Waiting []Split // known and not assigned
}

var stateCodec = sdk.JSONCodec[state]{Current: 1}

// enumerator is an enumerator without package base. Everything belongs to the coordinator's loop.
type enumerator struct {
	*Source
	ctx sdk.EnumeratorContext[Split]
	state
	restored bool
	load     map[sdk.ReaderID]int
	told     map[sdk.ReaderID]bool
	closed   bool
	found    sdk.Counter
}

// NewEnumerator implements [sdk.Source].
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], saved *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	e := &enumerator{Source: s, ctx: ctx, load: map[sdk.ReaderID]int{}, told: map[sdk.ReaderID]bool{}}
	if !s.has(CountsNothing) {
		e.found = ctx.Metrics().Counter("found", "{part}", "Parts that were found.")
	}
	if saved == nil {
		return e, nil
	}
	restored, err := stateCodec.Decode(saved.Version, saved.Data)
	if err != nil && !s.has(ForgivesDamage) {
		return nil, fmt.Errorf("state of the enumerator: %w", err)
	}
	e.state, e.restored = restored, true
	return e, nil
}

func (e *enumerator) Start() error {
	if e.has(LeavesTicker) {
		never := make(chan struct{})
		go func() { <-never }()
	}
	if e.has(DiscoversInStart) {
		n, err := e.system.list(context.Background())
		e.listed(n, err)
		return nil
	}
	if e.has(DiscoversAtLarge) {
		go func() {
			n, err := e.system.list(context.Background())
			e.ctx.Schedule("listed", 0, func() { e.listed(n, err) })
		}()
		return nil
	}
	if e.has(ClaimsDiscovery) && e.Listed {
		return nil
	}
	if e.has(ClaimsDiscovery) {
		e.Listed = true
	}
	e.discover()
	return nil
}

// complete reports that nothing will be discovered any more.
func (e *enumerator) complete() bool { return e.Listed && e.ends != nil }

func (e *enumerator) discover() {
	if e.closed || e.complete() && !e.has(ClaimsDiscovery) {
		return
	}
	sdk.CallAsync(e.ctx, "discover", e.system.list, e.listed, sdk.CallOptions{})
}

// listed takes the result of a discovery.
func (e *enumerator) listed(n int, err error) {
	if e.closed {
		return
	}
	if err != nil && e.has(GivesUpDiscovery) {
		return
	}
	if e.has(HidesFailure) {
		err = nil // n is 0
	}
	if err == nil {
		e.Listed = true
		e.learn(n)
	}
	e.distributeOrFail()
	if !e.complete() && (err != nil || !e.has(DiscoversOnce)) {
		e.ctx.Schedule("discover", interval, e.discover)
	}
}

// learn adds the parts that are new.
func (e *enumerator) learn(n int) {
	for part := range n {
		if e.has(RemembersAssigned) && e.remembers(part, false) {
			continue
		}
		if !slices.Contains(e.Known, part) {
			e.Known = append(e.Known, part)
			e.Waiting = append(e.Waiting, e.at(part))
			if e.found != nil {
				e.found.Add(1)
			}
			if e.has(NamesBySplit) {
				e.ctx.Metrics().Counter(fmt.Sprintf("found_%d", part), "{part}", "One part.").Add(1)
			}
		} else if e.has(AssignsEachTime) {
			e.Waiting = append(e.Waiting, e.at(part))
		}
	}
}

// distributeOrFail is distribute for callbacks, which cannot return an error.
func (e *enumerator) distributeOrFail() {
	if err := e.distribute(); err != nil {
		e.ctx.Call("fail", func(context.Context) (any, error) { return nil, err }, func(any, error) {}, sdk.CallOptions{OnFailure: sdk.FailCoordinator})
	}
}

func (e *enumerator) AddReader(info sdk.ReaderInfo) error {
	if !e.has(IgnoresOwned) {
		for _, owned := range [][]sdk.SplitID{info.Splits, info.Finished} {
			for _, id := range owned {
				e.own(id)
			}
		}
	}
	e.load[info.ID] = len(info.Splits)
	if e.has(AdoptsOrphans) && e.restored {
		return e.adopt(info)
	}
	if !e.has(TellsOnce) {
		delete(e.told, info.ID)
	}
	return e.distribute()
}

// own takes what a reader has out of what is to be assigned.
func (e *enumerator) own(id sdk.SplitID) {
	e.Waiting = slices.DeleteFunc(e.Waiting, func(s Split) bool { return s.SplitID() == id })
	var part int
	if _, err := fmt.Sscanf(string(id), "log-%d", &part); err == nil && !slices.Contains(e.Known, part) && !e.has(ForgetsKnown) {
		e.Known = append(e.Known, part)
	}
}

// adopt takes what is known and not with the first reader that registers for lost, and gives it to that one.
func (e *enumerator) adopt(first sdk.ReaderInfo) error {
	e.restored = false
	for _, part := range e.Known {
		s := e.at(part)
		if slices.Contains(first.Splits, s.SplitID()) {
			continue
		}
		if err := e.ctx.Assign(first.ID, []Split{s}); err != nil {
			return err
		}
	}
	return e.distribute()
}

func (e *enumerator) ReturnSplits(splits []Split) error {
	for _, s := range splits {
		if e.has(RestartsReturned) {
			s.Next = 0
		}
		e.own(s.SplitID())
		e.Waiting = append(e.Waiting, s)
	}
	return e.distribute()
}

// SplitsFinished implements [sdk.FinishedHandler].
func (e *enumerator) SplitsFinished(splits []Split) error {
	if e.has(TakesFinishedBack) {
		e.Waiting = append(e.Waiting, splits...)
	}
	return e.distribute()
}

// CheckpointComplete implements [sdk.CheckpointListener].
func (e *enumerator) CheckpointComplete(sdk.CheckpointID) error { return e.distribute() }

// CheckpointAborted implements [sdk.CheckpointListener].
func (e *enumerator) CheckpointAborted(sdk.CheckpointID) error { return nil }

// distribute assigns what waits to the reader with the least, when all have registered.
func (e *enumerator) distribute() error {
	readers := e.ctx.Readers()
	if len(readers) < e.ctx.Parallelism() {
		return nil
	}
	for len(e.Waiting) > 0 {
		to := slices.MinFunc(readers, func(a, b sdk.ReaderID) int { return e.load[a] - e.load[b] })
		s := e.Waiting[0]
		if e.has(DropsRefused) {
			e.Waiting = e.Waiting[1:]
		}
		if err := e.ctx.Assign(to, []Split{s}); errors.Is(err, sdk.ErrBackpressure) {
			return nil
		} else if err != nil {
			return fmt.Errorf("assign %s: %w", s.SplitID(), err)
		}
		if !e.has(DropsRefused) {
			e.Waiting = e.Waiting[1:]
		}
		e.load[to]++
		e.remembers(s.Part, true)
	}
	if !e.complete() {
		return nil
	}
	for _, reader := range readers {
		if e.told[reader] || e.has(TellsOwnersOnly) && e.load[reader] == 0 {
			continue
		}
		if err := e.ctx.NoMoreSplits(reader); err != nil {
			return err
		}
		e.told[reader] = true
	}
	return nil
}

func (e *enumerator) Snapshot(sdk.CheckpointID) (sdk.VersionedBytes, error) {
	saved := e.state
	if e.has(ForgetsWaiting) {
		saved.Waiting = nil
	}
	if e.has(ForgetsKnown) {
		saved.Known = nil
	}
	data, err := stateCodec.Encode(saved)
	return sdk.VersionedBytes{Version: stateCodec.Version(), Data: data}, err
}

func (e *enumerator) Close() error {
	e.closed = true
	return nil
}
