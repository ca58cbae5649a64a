package base

import (
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

// Bounds of what is kept for checkpoints that may never complete. Telling the source system of a checkpoint is optional and
// a later one says the same and more, so the oldest may be forgotten without harm.
const (
	maxPendingCheckpoints = 64
	maxFinishedSplits     = 100_000
)

// pendingCommits remembers what each snapshot contained until its checkpoint completes, together with the splits that
// finished since: those are part of every snapshot until one of them has completed.
type pendingCommits[S sdk.Split] struct {
	snapshots []snapshotOf[S] // ascending by id
	finished  []finishedSplit[S]
}

type snapshotOf[S sdk.Split] struct {
	id     sdk.CheckpointID
	splits []S
}

type finishedSplit[S sdk.Split] struct {
	split S
	// first is the first snapshot that contains it, 0 while there is none. Only the completion of that one or a later one
	// lets it go: a checkpoint taken before the split finished says nothing of its end.
	first sdk.CheckpointID
}

func (p *pendingCommits[S]) finish(final S) {
	if len(p.finished) == maxFinishedSplits {
		p.finished = slices.Delete(p.finished, 0, maxFinishedSplits/10)
	}
	p.finished = append(p.finished, finishedSplit[S]{split: final})
}

func (p *pendingCommits[S]) snapshot(id sdk.CheckpointID, active []S) {
	splits := slices.Grow(slices.Clone(active), len(p.finished))
	for i := range p.finished {
		if p.finished[i].first == 0 {
			p.finished[i].first = id
		}
		splits = append(splits, p.finished[i].split)
	}
	if len(p.snapshots) == maxPendingCheckpoints {
		p.snapshots = slices.Delete(p.snapshots, 0, 1)
	}
	p.snapshots = append(p.snapshots, snapshotOf[S]{id, splits})
}

// complete answers the newest snapshot that id covers, and forgets it and all older ones.
func (p *pendingCommits[S]) complete(id sdk.CheckpointID) (covered sdk.CheckpointID, splits []S, ok bool) {
	n := 0
	for n < len(p.snapshots) && p.snapshots[n].id <= id {
		n++
	}
	if n == 0 {
		return 0, nil, false
	}
	newest := p.snapshots[n-1]
	p.snapshots = slices.Delete(p.snapshots, 0, n)
	p.finished = slices.DeleteFunc(p.finished, func(f finishedSplit[S]) bool { return f.first != 0 && f.first <= newest.id })
	return newest.id, newest.splits, true
}

// abort forgets the snapshot. What had finished before it is in the next one too.
func (p *pendingCommits[S]) abort(id sdk.CheckpointID) {
	p.snapshots = slices.DeleteFunc(p.snapshots, func(s snapshotOf[S]) bool { return s.id == id })
}
