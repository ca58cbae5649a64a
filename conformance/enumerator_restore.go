package conformance

import (
	"maps"
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func restoreScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"enumerator/snapshot_during_discovery":           snapshotDuringDiscovery[S, B],
		"enumerator/snapshot_before_assignment":          snapshotBeforeAssignment[S, B],
		"enumerator/snapshot_after_assignment":           snapshotAfterAssignment[S, B],
		"enumerator/owned_splits_are_dropped":            ownedSplitsAreDropped[S, B],
		"enumerator/returned_splits_keep_their_position": returnedSplitsKeepTheirPosition[S, B],
	}
}

func snapshotDuringDiscovery[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	source := x.h.Source(x.b)
	x.b.Stall()
	c := x.coordinates(source, 1, nil)
	c.start()
	c.registerAll(1)
	pass(time.Second)
	_, state := c.checkpoint()
	held := c.holdings()[0] // a source that needs not ask for its parts has assigned them
	c.close()
	x.b.Resume()
	again := x.coordinates(source, 1, &state)
	again.start()
	again.register(sdk.ReaderInfo{Splits: held})
	again.all(3 - len(held))
	pass(2 * time.Hour)
	if n := len(again.list()); n != 3-len(held) {
		x.fail("%d splits were assigned, want %d", n, 3-len(held))
	}
}

func snapshotBeforeAssignment[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(4)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	c := x.coordinates(source, 1, nil)
	c.start()
	pass(time.Minute)
	_, state := c.checkpoint()
	c.registerAll(1)
	want := x.encoded(codec, c.all(4))
	c.close()

	again := x.coordinates(source, 1, &state)
	again.start()
	again.registerAll(1)
	if got := x.encoded(codec, again.all(4)); !maps.Equal(got, want) {
		x.fail("from a snapshot before the assignment %q were assigned, without a restore %q", got, want)
	}

	// Two of them come back further on, while their reader is away.
	moved := x.further(source, again.list()[:2])
	id, _ := again.checkpoint()
	again.complete(id)
	third := x.coordinates(source, 2, nil)
	third.start()
	third.registerAll(1) // of two: nothing is to be assigned yet, or to the only one
	third.giveBack(moved...)
	_, state = third.checkpoint()
	held := third.holdings()
	third.close()
	fourth := x.coordinates(source, 2, &state)
	fourth.start()
	for reader := range sdk.ReaderID(2) {
		fourth.register(sdk.ReaderInfo{ID: reader, Splits: held[reader]})
	}
	pass(x.h.Discovery)
	got := x.encoded(codec, fourth.list())
	for id, data := range x.encoded(codec, moved) {
		if !slices.Contains(slices.Concat(held[0], held[1]), id) && got[id] != data {
			x.fail("split %q was returned as %q, was in a snapshot before it was assigned, and came out of it as %q", id, data, got[id])
		}
	}
}

// further reads a few records of splits and answers them at their new positions.
func (x *trial[S, B]) further(source sdk.Source[S], splits []S) []S {
	for p := range x.appended {
		x.append(p, 6)
	}
	l := x.reads(source, splits...)
	l.take(6 * len(splits))
	moved := x.stored(source.SplitCodec(), l.snapshot(1))
	l.close()
	return moved
}

func snapshotAfterAssignment[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	source := x.h.Source(x.b)
	c := x.coordinates(source, 2, nil)
	c.start()
	c.registerAll(2)
	c.all(3)
	held := c.holdings()
	_, state := c.checkpoint()
	c.close()
	again := x.coordinates(source, 2, &state)
	again.start()
	for reader := range sdk.ReaderID(2) {
		again.register(sdk.ReaderInfo{ID: reader, Splits: held[reader]})
	}
	pass(max(x.h.Discovery, 2*time.Hour))
	if n := ids(again.list()); len(n) > 0 {
		x.fail("%v were assigned again after a restore, although readers hold them", n)
	}
}

func ownedSplitsAreDropped[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(4)
	source := x.h.Source(x.b)
	splits := ids(x.splits(source, 4))
	c := x.coordinates(source, 2, nil)
	c.start()
	pass(time.Minute)
	_, state := c.checkpoint()
	c.close()
	again := x.coordinates(source, 2, &state)
	again.start()
	again.register(sdk.ReaderInfo{ID: 0, Splits: splits[:1]})
	again.register(sdk.ReaderInfo{ID: 1, Finished: splits[1:2]})
	again.all(2)
	pass(max(x.h.Discovery, 2*time.Hour))
	got := ids(again.list())
	if slices.Contains(got, splits[0]) {
		x.fail("split %q was assigned although reader 0 had said that it holds it", splits[0])
	}
	if slices.Contains(got, splits[1]) {
		x.fail("split %q was assigned although reader 1 had said that it has read it to the end", splits[1])
	}
	if len(got) < 2 {
		x.fail("only %v were assigned, want also the others of %v", got, splits[2:])
	}
}

func returnedSplitsKeepTheirPosition[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(4)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	first := x.coordinates(source, 1, nil)
	first.start()
	first.registerAll(1)
	first.all(4)
	_, state := first.checkpoint()
	moved := x.further(source, first.list())
	first.close()
	want := x.encoded(codec, moved)

	c := x.coordinates(source, 2, &state)
	c.start()
	c.giveBack() // nothing
	c.giveBack(moved[:2]...)
	c.registerAll(2)
	c.giveBack(moved[2])
	c.giveBack(moved[3])
	c.giveBack()
	check := func(when string) {
		if got := x.encoded(codec, c.all(4)); !maps.Equal(got, want) {
			x.fail("%s the assigned splits are %q, want what was returned: %q", when, got, want)
		}
	}
	check("after the return")
	pass(max(x.h.Discovery, 2*time.Hour))
	check("after further discoveries")
	c.register(sdk.ReaderInfo{ID: 0}) // a new attempt, whose splits come back
	c.giveBack(moved...)
	check("after the failure of a reader")
}
