package conformance

import (
	"time"

	"github.com/penstock-dev/penstock/runtime/engine"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

func engineScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"engine/reads_everything":                   readsEverything[S, B],
		"engine/fewer_splits_than_readers":          fewerSplitsThanReaders[S, B],
		"engine/bounded_job_ends":                   boundedJobEnds[S, B],
		"engine/checkpoints_while_the_system_hangs": checkpointsWhileTheSystemHangs[S, B],
		"engine/a_job_is_killed":                    aJobIsKilled[S, B],
		"engine/reader_dies":                        func(x *trial[S, B]) { dies(x, true, false) },
		"engine/coordinator_dies":                   func(x *trial[S, B]) { dies(x, false, true) },
		"engine/both_die":                           func(x *trial[S, B]) { dies(x, true, true) },
		"engine/rescales":                           rescales[S, B],
		"engine/system_fails":                       systemFails[S, B],
	}
}

func readsEverything[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(5)
	x.appendAll(30)
	f := x.job()
	f.run(x.h.Source(x.b), 2, nil)
	f.reaches(x.total(), "when everything was there before the job began")
	x.appendAll(10)
	f.goesOn(3 * time.Second)
	x.append(2, 7)
	f.reaches(x.total(), "when more came while it ran")
	f.stops("asked for a savepoint")
	f.exactlyOnce("after the savepoint")
}

func fewerSplitsThanReaders[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	x.appendAll(20)
	f := x.job()
	f.run(x.h.Source(x.b), 5, nil)
	f.reaches(x.total(), "with five readers and two parts")
	f.checkpoints("with five readers and two parts", 3)
	f.stops("with three readers that have no split")
	f.exactlyOnce("with five readers and two parts")
}

// checkpoints waits until n more checkpoints have completed, each within a second.
func (f *fortune[S, B]) checkpoints(when string, n int) {
	select {
	case <-f.completed: // an older one
	default:
	}
	for range n {
		timer := time.NewTimer(f.patient())
		select {
		case took := <-f.completed:
			if took > f.x.bearable(time.Second) {
				f.x.fail("%s a checkpoint took %s", when, took)
			}
		case <-timer.C:
			f.x.stop("%s no checkpoint completed within %s", when, f.patient())
		}
		timer.Stop()
	}
}

func boundedJobEnds[S sdk.Split, B Backend](x *trial[S, B]) {
	source, _ := x.bounded(2, 40)
	f := x.job()
	f.run(source, 3, nil)
	f.ends("when everything was read", engine.Finished)
	f.exactlyOnce("when a bounded job had ended")

	f.run(x.h.Bounded(x.b), 2, nil)
	f.ends("started again after its end", engine.AlreadyFinished)

	f = x.job()
	f.run(x.h.Bounded(x.b), 3, nil)
	x.b.Stall() // in the middle of whatever it has got to
	f.goesOn(3 * time.Second)
	f.cancel()
	x.b.Resume()
	f.run(x.h.Bounded(x.b), 2, nil)
	f.ends("killed half way and started again", engine.Finished, engine.AlreadyFinished)
	f.exactlyOnce("when a bounded job had been killed and had ended")
}

func checkpointsWhileTheSystemHangs[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	x.appendAll(10)
	f := x.job()
	f.run(x.h.Source(x.b), 2, nil)
	f.reaches(x.total(), "before the system hung")
	x.b.Stall()
	x.appendAll(10)
	pass(10 * time.Minute)
	f.checkpoints("while the system hung", 3)
	x.b.Resume()
	f.reaches(x.total(), "after the system hung")
	f.exactlyOnce("after the system hung")
}

func aJobIsKilled[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	f := x.job()
	x.appendAll(5)
	f.run(x.h.Source(x.b), 2, nil)
	f.reaches(x.total(), "at first")
	for kill := range 10 {
		x.appendAll(4)
		// Sometimes at once, sometimes after reading, sometimes after a checkpoint or two.
		f.goesOn(time.Duration(kill*kill) * 37 * time.Millisecond)
		f.cancel()
		x.append(kill%3, 3)
		f.run(x.h.Source(x.b), 2, nil)
		if kill%3 == 0 {
			f.reaches(x.total(), "after a kill")
		}
	}
	f.reaches(x.total(), "after ten kills")
	f.stops("after ten kills")
	f.exactlyOnce("after ten kills")
}

func rescales[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(4)
	f := x.job()
	for _, readers := range []int{2, 4, 1, 3, 2} {
		x.appendAll(9)
		f.run(x.h.Source(x.b), readers, nil)
		f.reaches(x.total()-4, "with another number of readers")
		f.stops("with another number of readers")
	}
	f.run(x.h.Source(x.b), 2, nil)
	f.reaches(x.total(), "in the end")
	f.exactlyOnce("after running with 2, 4, 1, 3 and 2 readers")
}

// dies runs a job for each point, and kills it there: the first ones with what is assigned first, the others with the second checkpoint.
func dies[S sdk.Split, B Backend](x *trial[S, B], reader, coordinator bool) {
	for _, point := range seam.Points {
		for _, n := range []int{1, 3} {
			s := newStrike(point, n, reader, coordinator)
			x.diesOnce(s)
			if x.failed() {
				return
			}
		}
	}
}

func (x *trial[S, B]) diesOnce(s *strike) {
	const parts, more = 3, 2
	x.start(parts)
	x.appendAll(10)
	f := x.job()
	f.run(x.h.Source(x.b), 2, s.seams())
	grower, grows := any(x.b).(Grower)
	grows = grows && (x.h.Parts == 0 || x.h.Parts >= parts+more)
	for round := range 4 {
		pass(900 * time.Millisecond)
		x.appendAll(5)
		if grows && round == 1 {
			grower.Grow(parts + more)
			x.appended = append(x.appended, 0, 0)
			x.append(parts, 12)
			x.append(parts+1, 1)
		}
	}
	f.reaches(x.total(), s.String()+", and")
	f.checkpoints(s.String()+", and", 2)
	f.stops(s.String() + ", and")
	f.exactlyOnce(s.String())
	if !s.happened() && s.n == 1 {
		x.fail("the suite meant to have %s, and that did not come about", s)
	}
	x.end()
}

func systemFails[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(3)
	failer, fails := any(x.b).(Failer)
	dropper, drops := any(x.b).(Dropper)
	if !fails && !drops {
		x.skip("the backend can neither fail calls (conformance.Failer) nor drop connections (conformance.Dropper)")
	}
	f := x.job()
	x.appendAll(5)
	f.run(x.h.Source(x.b), 2, nil)
	f.reaches(x.total(), "before anything failed")
	for round := range 12 {
		x.appendAll(3)
		pass(time.Duration(round%5) * 100 * time.Millisecond)
		switch {
		case round == 7:
			x.b.Stall()
			pass(time.Minute)
			x.b.Resume()
		case round%2 == 0 && fails:
			failer.Fail(1 + round/2)
		case drops:
			dropper.Drop()
		}
		x.append(round%3, 2)
		pass(time.Duration(round) * 300 * time.Millisecond)
	}
	if fails {
		failer.Fail(0)
	}
	f.reaches(x.total(), "after failures")
	f.stops("after failures")
	f.exactlyOnce("after failures")
}
