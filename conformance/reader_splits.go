package conformance

import (
	"slices"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func splitScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"reader/added_split_is_served": addedSplitIsServed[S, B],
		"reader/paused_split_stays":    pausedSplitStays[S, B],
		"reader/duplicate_assignment":  duplicateAssignment[S, B],
	}
}

func addedSplitIsServed[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	splits := x.splits(source, 2)
	l := x.reads(source, splits[0])
	l.rest(time.Second) // it waits for data of the first one
	x.append(0, 3)
	x.append(1, 3)
	first := l.take(3)
	part, _, ok := parse(first[0])
	if !ok {
		x.stop("a record holds %.60q, which was never appended", first[0])
	}
	l.rest(time.Second)
	l.add(splits[1])
	l.take(3)
	x.everything(l.out.texts)
	x.append(part, 4)
	x.append(1-part, 4)
	l.take(8)
	x.everything(l.out.texts)
}

func duplicateAssignment[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 30)
	l := x.reads(source, split)
	l.limits.Records = 6
	l.add(split, split)
	l.take(12)
	l.add(split) // at the position that it had twelve records ago
	if n := len(l.snapshot(1)); n != 1 {
		x.fail("the snapshot holds %d splits after one was added several times", n)
	}
	l.takeAll()
	x.append(0, 5)
	l.takeAll()
	l.rest(time.Second)
	x.everything(l.out.texts)
}

func pausedSplitStays[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	splits := x.splits(source, 2)
	l := x.reads(source, splits...)
	pauser, ok := l.reader.(sdk.Pauser)
	if !ok {
		x.skip("the reader has no PauseOrResume (sdk.Pauser)")
	}
	pause := func(pause, resume []sdk.SplitID) {
		l.do("PauseOrResume", func() error { return pauser.PauseOrResume(pause, resume) })
	}
	x.append(0, 5)
	x.append(1, 5)
	l.take(10)
	paused := splits[0].SplitID()
	pause([]sdk.SplitID{paused, "unknown"}, nil)
	for range 10 { // in that many fetches, or more: what goes on to come of a paused split is kept without bound
		x.append(0, 2)
		x.append(1, 2)
		l.take(2)
	}
	l.rest(x.h.Delay)
	came := 0
	for _, r := range l.out.records[10:] {
		if r.rec.Split == paused {
			came++
		}
	}
	if others := len(l.out.records) - 10 - came; came > 0 || others != 20 {
		x.fail("while one of two splits was paused %d records of it came, and %d of 20 of the other one", came, others)
	}
	if n := len(l.snapshot(1)); n != 2 {
		x.fail("the snapshot holds %d of 2 splits while one is paused", n)
	}
	pause(nil, []sdk.SplitID{paused, "unknown"})
	l.takeAll()
	l.rest(x.h.Delay)
	x.everything(l.out.texts)
	pause([]sdk.SplitID{paused}, []sdk.SplitID{paused}) // a resume is the last word
	x.append(0, 5)
	x.append(1, 5)
	l.takeAll()
	l.rest(x.h.Delay)
	x.everything(l.out.texts)
}

// ids lists the ids of splits, ascending.
func ids[S sdk.Split](splits []S) (list []sdk.SplitID) {
	for _, s := range splits {
		list = append(list, s.SplitID())
	}
	slices.Sort(list)
	return list
}
