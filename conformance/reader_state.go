package conformance

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func stateScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"state/snapshot_after_every_record":       snapshotAfterEveryRecord[S, B],
		"state/position_moves_in_turns_only":      positionMovesInTurnsOnly[S, B],
		"state/unread_splits_are_kept":            unreadSplitsAreKept[S, B],
		"state/snapshots_are_values":              snapshotsAreValues[S, B],
		"state/restored_splits_may_move_together": restoredSplitsMayMoveTogether[S, B],
	}
}

// encoded is a snapshot as it would be stored: the bytes of each split by its id.
func (x *trial[S, B]) encoded(codec sdk.Codec[S], splits []S) map[sdk.SplitID]string {
	out := make(map[sdk.SplitID]string, len(splits))
	for _, s := range splits {
		data, err := codec.Encode(s)
		x.must("encode a split", err)
		if _, twice := out[s.SplitID()]; twice {
			x.stop("the snapshot holds split %q twice", s.SplitID())
		}
		out[s.SplitID()] = string(data)
	}
	return out
}

// stored takes splits through their encoding, as a checkpoint does.
func (x *trial[S, B]) stored(codec sdk.Codec[S], splits []S) []S {
	encoded := x.encoded(codec, splits)
	out := make([]S, 0, len(encoded))
	for _, id := range slices.Sorted(maps.Keys(encoded)) {
		s, err := codec.Decode(codec.Version(), []byte(encoded[id]))
		x.must("decode a split", err)
		out = append(out, s)
	}
	return out
}

func snapshotAfterEveryRecord[S sdk.Split, B Backend](x *trial[S, B]) {
	const each, records = 20, 40
	x.start(2)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	x.append(0, each)
	x.append(1, each)
	l := x.reads(source, x.splits(source, 2)...)
	l.limits.Records = 1
	snapshots := [][]S{x.stored(codec, l.snapshot(1))}
	for len(l.out.texts) < records {
		l.take(1)
		if n := len(l.out.texts); n != len(snapshots) {
			x.stop("a turn of one record emitted %d", n-len(snapshots)+1)
		}
		snapshots = append(snapshots, x.stored(codec, l.snapshot(sdk.CheckpointID(len(snapshots)+1))))
	}
	x.everything(l.out.texts)
	l.close()
	for n, splits := range snapshots {
		want := make([]span, 2)
		for _, text := range l.out.texts[:n] {
			part, _, _ := parse(text)
			want[part].from++
		}
		want[0].to, want[1].to = each, each
		again := x.reads(x.h.Source(x.b), splits...)
		_, err := again.drive(x.inTime(), func() bool { return len(again.out.texts) >= records-n })
		if n == records {
			again.rest(time.Second)
		}
		switch wrong := compare(again.out.texts, want, true); {
		case wrong != "" && err != nil: // it may only be late
			x.fail("resumed at snapshot %d of %d: %v; %s", n, records, err, wrong)
		case wrong != "":
			x.fail("resumed at snapshot %d of %d: %s", n, records, wrong)
		case err != nil:
			x.fail("resumed at snapshot %d of %d: %v", n, records, err)
		}
		again.close()
	}
}

func positionMovesInTurnsOnly[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	l := x.reads(source, x.splits(source, 2)...)
	before := x.encoded(codec, l.snapshot(1))
	still := func(when string) {
		for range 20 {
			l.idle(50 * time.Millisecond)
			if now := x.encoded(codec, l.snapshot(2)); !maps.Equal(now, before) {
				x.stop("%s the snapshot changed from %q to %q although nobody polled", when, before, now)
			}
		}
	}
	still("before anything was sent")
	x.append(0, 30)
	x.append(1, 30)
	still("while records arrived")
	x.b.Stall()
	still("while the system hung")
	x.b.Resume()
	l.limits.Records = 7
	l.take(7)
	before = x.encoded(codec, l.snapshot(3))
	x.append(0, 30)
	still("after the first turn")
	l.takeAll()
	x.everything(l.out.texts)
}

func unreadSplitsAreKept[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	splits := x.splits(source, 3)
	want := x.encoded(codec, splits)
	l := x.newLoop(source)
	l.open()
	if left := l.snapshot(1); len(left) > 0 {
		x.fail("a reader without splits has %v in its snapshot", ids(left))
	}
	x.b.Stall()
	l.add(splits...)
	check := func(when string) {
		if got := x.encoded(codec, l.snapshot(2)); !maps.Equal(got, want) {
			x.fail("%s the snapshot is %q, want the splits as they were added: %q", when, got, want)
		}
	}
	check("right after the splits were added")
	l.rest(time.Minute)
	check("while the system hangs")
	x.b.Resume()
	x.append(1, 3)
	l.take(3)
	if got := x.encoded(codec, l.snapshot(3)); len(got) != 3 {
		x.fail("when one of three splits was read from the snapshot holds %d", len(got))
	}
}

func snapshotsAreValues[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	splits := x.splits(source, 2)
	l := x.reads(source, splits...)
	x.append(0, 10)
	x.append(1, 10)
	l.take(20)
	kept := l.snapshot(1)
	before := x.encoded(codec, kept)
	x.append(0, 10)
	l.take(10)
	if after := x.encoded(codec, kept); !maps.Equal(before, after) {
		x.fail("a snapshot encoded to %q when it was taken and to %q after more was read", before, after)
	}
	scribbled := l.snapshot(2)
	var zero S
	for i := range scribbled {
		scribbled[i] = zero
	}
	x.append(1, 10)
	l.take(10)
	if n := len(l.snapshot(3)); n != 2 {
		x.fail("after a snapshot was overwritten by its owner the next one holds %d of 2 splits", n)
	}
	x.everything(l.out.texts)
}

func restoredSplitsMayMoveTogether[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(4)
	source := x.h.Source(x.b)
	codec := source.SplitCodec()
	splits := x.splits(source, 4)
	for p := range 4 {
		x.append(p, 20)
	}
	var texts []string
	var moved []S
	for i, share := range [][]S{splits[:2], splits[2:]} {
		l := x.reads(x.h.Source(x.b), share...)
		l.limits.Records = 3
		texts = append(texts, l.take(9+6*i)...)
		moved = append(moved, x.stored(codec, l.snapshot(1))...)
		l.close()
	}
	slices.Reverse(moved)
	l := x.reads(x.h.Source(x.b), moved...)
	x.everything(append(texts, l.take(x.total()-len(texts))...))
}

func checkpointScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"checkpoint/notices_in_any_order":         noticesInAnyOrder[S, B],
		"checkpoint/missing_notices_cost_nothing": missingNoticesCostNothing[S, B],
	}
}

func (l *loop[S, B]) listener() sdk.CheckpointListener {
	h, ok := l.reader.(sdk.CheckpointListener)
	if !ok {
		l.x.skip("the reader does not listen to checkpoints (sdk.CheckpointListener)")
	}
	return h
}

func noticesInAnyOrder[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.reads(source, split)
	listener := l.listener()
	complete := func(ids ...sdk.CheckpointID) {
		for _, id := range ids {
			l.do("CheckpointComplete", func() error { return listener.CheckpointComplete(id) })
		}
	}
	abort := func(ids ...sdk.CheckpointID) {
		for _, id := range ids {
			l.do("CheckpointAborted", func() error { return listener.CheckpointAborted(id) })
		}
	}
	complete(1, 999) // before there is any
	abort(2, 998)
	for id := sdk.CheckpointID(1000); id < 1040; id++ {
		x.append(0, 2)
		l.take(2)
		l.snapshot(id)
		switch id % 8 {
		case 0:
			complete(id, id)
		case 1:
			abort(id, id)
		case 2:
			complete(id-1, id-2, id)
		case 3:
			complete(id + 100)
		case 4:
			abort(id - 900)
			complete(id)
			abort(id)
		case 5: // missing
		case 6:
			complete(id, id-1)
		case 7:
			abort(id + 1)
		}
	}
	x.append(0, 5)
	l.take(5)
	x.everything(l.out.texts)
}

// measuring is held while a case looks at the memory of the process, so that two of them do not see each other.
var measuring sync.Mutex

func missingNoticesCostNothing[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(4)
	source := x.h.Source(x.b)
	l := x.reads(source, x.splits(source, 4)...)
	l.listener()
	x.append(0, 3)
	l.take(3)
	const snapshots, most = 100_000, 8 << 20
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	next := sdk.CheckpointID(1)
	take := func(n int) {
		l.do("Snapshot", func() error {
			for range n {
				next++
				if _, err := l.reader.Snapshot(next); err != nil {
					return err
				}
			}
			return nil
		})
	}
	measuring.Lock()
	defer measuring.Unlock()
	take(1000)
	// Whatever else runs in this process allocates too, so that only what grows each time counts.
	for try := 1; ; try++ {
		before := memory()
		take(snapshots)
		after := memory()
		if after < before+most {
			break
		}
		if try == 5 {
			x.fail("%d snapshots whose checkpoints never completed cost %d MiB, each of %d times", snapshots, (after-before)>>20, try)
			break
		}
	}
	x.append(0, 3)
	l.take(3)
	x.everything(l.out.texts)
}
