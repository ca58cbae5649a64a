package conformance

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func enumeratorScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"enumerator/assigns_each_split_once":       assignsEachSplitOnce[S, B],
		"enumerator/calls_never_block":             enumeratorNeverBlocks[S, B],
		"enumerator/failing_discovery":             failingDiscovery[S, B],
		"enumerator/failed_discovery_is_no_end":    failedDiscoveryIsNoEnd[S, B],
		"enumerator/new_parts_are_found":           newPartsAreFound[S, B],
		"enumerator/backpressure_loses_nothing":    backpressureLosesNothing[S, B],
		"enumerator/no_more_splits":                noMoreSplits[S, B],
		"enumerator/finished_splits_stay_finished": finishedSplitsStayFinished[S, B],
		"enumerator/damaged_state_is_refused":      damagedStateIsRefused[S, B],
	}
}

// registerAll registers readers 0 to n-1, which hold nothing.
func (c *coordinator[S, B]) registerAll(n int) {
	for id := range n {
		c.register(sdk.ReaderInfo{ID: sdk.ReaderID(id)})
	}
}

func assignsEachSplitOnce[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(5)
	for _, late := range []bool{false, true} { // registration before or after the first discovery
		c := x.coordinates(x.h.Source(x.b), 2, nil)
		c.start()
		if late {
			pass(time.Minute)
		}
		c.register(sdk.ReaderInfo{ID: 1})
		c.register(sdk.ReaderInfo{ID: 0})
		before := c.all(5)
		pass(2 * time.Hour)
		if now := c.all(5); !slices.Equal(ids(now), ids(before)) {
			x.fail("%v were assigned, and two hours later %v", ids(before), ids(now))
		}
		if err := c.lost(); err != nil {
			x.fail("the epoch ended: %v", err)
		}
		c.close()
	}
}

func enumeratorNeverBlocks[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	splits := x.splits(source, 2)
	x.b.Stall()
	var state *sdk.VersionedBytes
	for _, when := range []string{"of a new job", "of a restored job"} {
		c := x.coordinates(source, 1, state)
		c.start()
		c.registerAll(1)
		c.giveBack(splits[0])
		id, snapshot := c.checkpoint()
		c.complete(id)
		c.giveBack(splits[1])
		c.close()
		if c.waited > 0 {
			x.fail("a call of the enumerator %s took %s while the system hung", when, c.waited)
		}
		state = &snapshot
	}
}

func failingDiscovery[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	failer, ok := any(x.b).(Failer)
	if !ok {
		x.skip("the backend cannot fail calls (conformance.Failer)")
	}
	// An epoch may end with the error: then there is another one, as an engine would start it.
	for _, calls := range []int{1, 2, 4} {
		failer.Fail(calls)
		for range calls + 1 {
			c := x.coordinates(x.h.Source(x.b), 1, nil)
			c.start()
			c.registerAll(1)
			if c.await(x.h.Discovery, func() bool { return len(c.assigned) >= 3 }) {
				c.all(3)
				c.close()
				break
			}
			if have, err := len(c.list()), c.lost(); err == nil {
				x.stop("when %d calls had failed, %d of 3 splits were assigned within %s, and nobody was told of an error", calls, have, x.h.Discovery)
			}
			c.close()
		}
		failer.Fail(0)
	}
}

func failedDiscoveryIsNoEnd[S sdk.Split, B Backend](x *trial[S, B]) {
	if x.h.Bounded == nil {
		x.skip("the source cannot end (Harness.Bounded is not set)")
	}
	x.start(3)
	failer, ok := any(x.b).(Failer)
	if !ok {
		x.skip("the backend cannot fail calls (conformance.Failer)")
	}
	x.appendAll(5)
	for _, calls := range []int{1, 2, 4} {
		source := x.h.Bounded(x.b)
		failer.Fail(calls)
		have := 0
		for epoch := 0; epoch <= calls && have < 3; epoch++ {
			c := x.coordinates(source, 1, nil)
			c.start()
			c.registerAll(1)
			told := false
			there := c.await(x.h.Discovery, func() bool {
				have, told = len(c.assigned), len(c.noMore) > 0
				return told || have >= 3
			})
			switch err := c.lost(); {
			case told && have < 3:
				x.stop("when %d calls had failed, NoMoreSplits was said with %d of 3 splits assigned: the job would end, and would not have read the others", calls, have)
			case !there && err == nil:
				x.stop("when %d calls had failed, %d of 3 splits were assigned within %s, and nobody was told of an error", calls, have, x.h.Discovery)
			}
			c.close()
		}
		if failer.Fail(0); have < 3 {
			x.fail("when %d calls had failed, %d of 3 splits were assigned after %d epochs", calls, have, calls+1)
		}
	}
}

func newPartsAreFound[S sdk.Split, B Backend](x *trial[S, B]) {
	x.needs(4)
	x.start(2)
	grower, ok := any(x.b).(Grower)
	if !ok {
		x.skip("the backend cannot get more parts (conformance.Grower)")
	}
	source := x.h.Source(x.b)
	x.append(0, 5)
	x.append(1, 5)
	c := x.coordinates(source, 1, nil)
	c.start()
	c.registerAll(1)
	l := x.reads(source, c.all(2)...)
	l.takeAll()
	grower.Grow(4)
	x.appended = append(x.appended, 0, 0)
	x.append(2, 10)
	x.append(3, 10)
	x.append(0, 5)
	enough := func() bool { return len(l.out.texts) >= x.total() }
	for deadline := time.Now().Add(x.bearable(x.h.Discovery)); !enough() && time.Now().Before(deadline); {
		if _, err := l.drive(x.h.Discovery/200, enough); err != nil && !errors.Is(err, errQuiet) {
			x.stop("Poll: %v", err)
		}
		// A system may grow by new parts that take the place of old ones. Those end, and what follows them may wait for a checkpoint that says so.
		c.contains(l.out.finished)
		l.add(c.list()...) // those that it has are ignored
	}
	l.takeAll()
	x.everything(l.out.texts)
}

func backpressureLosesNothing[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(6)
	c := x.coordinates(x.h.Source(x.b), 2, nil)
	c.look(func() { c.refuse = 10 })
	c.start()
	c.registerAll(2)
	for range 20 {
		pass(10 * time.Second)
		id, _ := c.checkpoint()
		c.complete(id)
	}
	c.all(6)
	if err := c.lost(); err != nil {
		x.fail("ErrBackpressure ended the epoch: %v", err)
	}
}

func noMoreSplits[S sdk.Split, B Backend](x *trial[S, B]) {
	source, _ := x.bounded(2, 3)
	c := x.coordinates(source, 3, nil)
	c.start()
	c.registerAll(3)
	c.all(2)
	told := func(c *coordinator[S, B], want map[sdk.ReaderID]int, when string) {
		var got map[sdk.ReaderID]int
		there := c.await(x.h.Discovery, func() bool {
			got = maps.Clone(c.noMore)
			return maps.Equal(got, want)
		})
		if !there {
			x.fail("%s NoMoreSplits had been said, by reader: %v, want %v", when, got, want)
		}
	}
	all := map[sdk.ReaderID]int{0: 1, 1: 1, 2: 1}
	if !c.await(x.h.Discovery, func() bool { return maps.Equal(c.noMore, all) }) {
		// Where parts may take the place of others there may be more until everything was read.
		c.contains(x.readOut(source, c.list()))
	}
	told(c, all, "when all was assigned, and read")
	id, state := c.checkpoint()
	c.complete(id)
	held := c.holdings()
	c.register(sdk.ReaderInfo{ID: 1, Splits: held[1]})
	told(c, map[sdk.ReaderID]int{0: 1, 1: 2, 2: 1}, "when reader 1 had registered again")

	again := x.coordinates(source, 3, &state)
	again.start()
	for reader := range sdk.ReaderID(3) {
		again.register(sdk.ReaderInfo{ID: reader, Splits: held[reader]})
	}
	told(again, map[sdk.ReaderID]int{0: 1, 1: 1, 2: 1}, "in a restored epoch")
	if n := len(again.list()); n > 0 {
		x.fail("%d splits were assigned in a restored epoch although readers hold all of them", n)
	}
}

// readOut reads splits that end to their end.
func (x *trial[S, B]) readOut(source sdk.Source[S], splits []S) []S {
	l := x.reads(source, splits...)
	if _, err := l.drive(x.inTime(), func() bool { return len(l.out.finished) >= len(splits) }); err != nil {
		x.stop("%d of %d splits ended, then: %v", len(l.out.finished), len(splits), err)
	}
	l.close()
	return l.out.finished
}

func finishedSplitsStayFinished[S sdk.Split, B Backend](x *trial[S, B]) {
	source, _ := x.bounded(3, 4)
	c := x.coordinates(source, 1, nil)
	handler, ok := c.enumerator.(sdk.FinishedHandler[S])
	if !ok {
		x.skip("the enumerator does not hear of finished splits (sdk.FinishedHandler)")
	}
	c.start()
	c.registerAll(1)
	splits := c.all(3)
	finished := splits[:2]
	finish := func() {
		c.do("SplitsFinished", func() error { return handler.SplitsFinished(slices.Clone(finished)) })
	}
	finish()
	finish()
	c.look(func() { clear(c.assigned) })
	c.register(sdk.ReaderInfo{Splits: []sdk.SplitID{splits[2].SplitID()}})
	id, state := c.checkpoint()
	c.complete(id)
	pass(2 * time.Hour)
	if again := ids(c.list()); len(again) > 0 {
		x.fail("%v were assigned again after they had finished", again)
	}
	restored := x.coordinates(source, 1, &state)
	restored.start()
	restored.register(sdk.ReaderInfo{Splits: []sdk.SplitID{splits[2].SplitID()}})
	pass(2 * time.Hour)
	if again := ids(restored.list()); len(again) > 0 {
		x.fail("%v were assigned again after a restore, although they had finished before the checkpoint", again)
	}
}

func damagedStateIsRefused[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	c := x.coordinates(source, 1, nil)
	c.start()
	pass(time.Minute)
	_, state := c.checkpoint()
	// refused makes an enumerator of a state that no Snapshot answered.
	refused := func(what string, version int, data []byte, fits func(error) bool) {
		_, err, _ := c.worker.call("NewEnumerator", func() error {
			e, err := source.NewEnumerator(c, &sdk.VersionedBytes{Version: version, Data: data})
			if err == nil {
				return errors.Join(errAccepted, e.Close())
			}
			return err
		})
		if !fits(err) {
			x.fail("%s was answered with %v", what, err)
		}
	}
	corrupt := func(err error) bool { return errors.Is(err, sdk.ErrCorrupt) }
	for n := range state.Data {
		refused("a state of which only the beginning is left", state.Version, state.Data[:n:n], corrupt)
	}
	refused("a state with bytes behind it", state.Version, append(slices.Clone(state.Data), 'x'), corrupt)
	refused("a state of a later version", state.Version+1, state.Data, func(err error) bool {
		_, ok := errors.AsType[*sdk.UnknownVersionError](err)
		return ok
	})
}

// errAccepted says that something was taken that had to be refused.
var errAccepted = errors.New("no error: it was accepted")
