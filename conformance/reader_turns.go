package conformance

import (
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func turnScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"reader/poll_never_blocks":             pollNeverBlocks[S, B],
		"reader/backlog_comes_whole":           backlogComesWhole[S, B],
		"reader/record_budget":                 recordBudget[S, B],
		"reader/byte_budget":                   byteBudget[S, B],
		"reader/time_budget":                   timeBudget[S, B],
		"reader/preempted_turn_ends":           preemptedTurnEnds[S, B],
		"reader/refused_output_ends_the_turn":  refusedOutputEndsTheTurn[S, B],
		"reader/emitted_records_do_not_change": emittedRecordsDoNotChange[S, B],
		"reader/record_names_its_split":        recordNamesItsSplit[S, B],
	}
}

// one makes a system with one part, a source and its split.
func (x *trial[S, B]) one() (sdk.Source[S], S) {
	x.start(1)
	source := x.h.Source(x.b)
	return source, x.splits(source, 1)[0]
}

// exact fails unless values are those of one part from..to-1, in order.
func (x *trial[S, B]) exact(values []string, from, to int) {
	if wrong := compare(values, []span{{from, to}}, true); wrong != "" {
		x.fail("%s", wrong)
	}
}

// everything fails unless values are all that was appended, in order.
func (x *trial[S, B]) everything(values []string) {
	want := make([]span, len(x.appended))
	for i, n := range x.appended {
		want[i].to = n
	}
	if wrong := compare(values, want, true); wrong != "" {
		x.fail("%s", wrong)
	}
}

func pollNeverBlocks[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.b.Stall()
	x.append(0, 20)
	l := x.reads(source, split)
	poll := func(when string) {
		l.waited = 0
		l.rest(time.Minute)
		if l.waited > 0 {
			x.fail("a poll waited %s %s", l.waited, when)
		}
	}
	poll("while the system hung from the beginning")
	x.b.Resume()
	l.waited = 0
	l.take(20)
	if l.waited > 0 {
		x.fail("a poll waited %s while the system answered", l.waited)
	}
	x.b.Stall()
	x.append(0, 20)
	poll("while the system hung half way")
}

// backlogComesWhole has more records than pages usually hold.
func backlogComesWhole[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 3000)
	l := x.reads(source, split)
	l.limits.Records = 64
	l.takeAll()
	x.everything(l.out.texts)
}

func recordBudget[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.reads(source, split)
	for _, budget := range []int{1, 2, 7} {
		l.limits.Records = budget
		x.append(0, 50)
		before := len(l.out.records)
		_, err := l.drive(x.inTime(), func() bool {
			if n := len(l.out.records) - before; n > budget {
				x.stop("a turn with a budget of %d records emitted %d", budget, n)
			}
			before = len(l.out.records)
			return before == x.total()
		})
		x.must("read with a budget", err)
	}
	x.everything(l.out.texts)
}

func byteBudget[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.reads(source, split)
	l.limits.Bytes = 1
	x.append(0, 30)
	before := 0
	_, err := l.drive(x.inTime(), func() bool {
		if n := len(l.out.records) - before; n > 1 {
			x.stop("a turn with a budget of one byte emitted %d records of %d bytes together", n, l.out.sizes)
		}
		before = len(l.out.records)
		return before == x.total()
	})
	if err != nil {
		x.stop("with a budget of one byte %d of %d records came, then: %v", before, x.total(), err)
	}
	x.everything(l.out.texts)
}

// timeBudget gives turns a clock that each record sets forward.
func timeBudget[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 200)
	l := x.reads(source, split)
	l.backlog()
	now := time.Now()
	l.clock = func() time.Time { return now }
	l.limits.Records = 1 << 20
	counted := 0
	l.out.before = func() {
		if n := len(l.out.records); n > counted { // a view is looked at again for its rest
			now = now.Add(time.Duration(n-counted) * l.limits.Duration / 4)
			counted = n
		}
	}
	before := 0
	_, err := l.drive(x.inTime(), func() bool {
		most := 12
		if l.out.views {
			most *= maxView // a turn counts questions, and a view answers many
		}
		if n := len(l.out.records) - before; n > most {
			x.stop("a turn went on for %d records, each of which took a quarter of its time", n)
		}
		before = len(l.out.records)
		return before == x.total()
	})
	x.must("read with a slow clock", err)
	x.everything(l.out.texts)
}

func preemptedTurnEnds[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 100)
	l := x.reads(source, split)
	l.backlog()
	l.limits.Records = 1 << 20
	l.out.before = func() { l.urgent.Store(true) }
	if _, err := l.drive(x.inTime(), func() bool { return len(l.out.records) > 0 }); err != nil {
		x.stop("before the first record: %v", err)
	}
	if n := len(l.out.records); n > maxView {
		x.fail("the turn was preempted at its first record and emitted %d more", n-1)
	}
	l.out.before = nil
	l.urgent.Store(false)
	l.takeAll()
	x.everything(l.out.texts)
}

func refusedOutputEndsTheTurn[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 60)
	l := x.reads(source, split)
	const accepted = 7
	l.out.refuse = accepted
	if _, err := l.drive(x.inTime(), func() bool { return l.out.refusals > 0 }); err != nil {
		x.stop("before a record was refused: %v", err)
	}
	if l.out.refusals > 1 {
		x.fail("after a refusal the same turn emitted %d more times", l.out.refusals-1)
	}
	l.out.refuse = -1
	l.urgent.Store(false)
	for range 3 {
		_, _ = l.poll() // what it answers is nobody's business any more
	}
	if n := len(l.out.texts); n != accepted {
		x.fail("%d records were accepted before the refusal, and %d were emitted in the end", accepted, n)
	}
	again := x.reads(x.h.Source(x.b), l.snapshot(1)...)
	x.exact(again.take(60-accepted), accepted, 60)
}

func emittedRecordsDoNotChange[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.reads(source, split)
	for range 10 {
		x.append(0, 40)
		l.take(40)
	}
	x.everything(l.out.texts)
	l.close()
	if n, example := l.out.changed(); n > 0 {
		x.fail("%d of %d records changed after they were emitted; the first was %.60q", n, len(l.out.records), example)
	}
}

func recordNamesItsSplit[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	source := x.h.Source(x.b)
	l := x.reads(source, x.splits(source, 3)...)
	for part := range 3 {
		x.append(part, 5)
	}
	l.take(15)
	split := map[int]sdk.SplitID{}
	part := map[sdk.SplitID]int{}
	for _, r := range l.out.records {
		id := r.rec.Split
		p, _, _ := parse(r.text)
		if id == "" {
			x.stop("the record with %.60q names no split", r.text)
		}
		if known, ok := split[p]; ok && known != id {
			x.stop("records of part %d are said to be of split %q and of split %q", p, known, id)
		}
		if known, ok := part[id]; ok && known != p {
			x.stop("records of part %d and of part %d are said to be of split %q", known, p, id)
		}
		split[p], part[id] = id, p
	}
}
