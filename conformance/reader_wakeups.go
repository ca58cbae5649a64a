package conformance

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func wakeScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"reader/wakeup_ends_a_turn":   wakeupEndsATurn[S, B],
		"reader/idle_reader_waits":    idleReaderWaits[S, B],
		"reader/no_lost_availability": noLostAvailability[S, B],
		"reader/wakeup_loses_nothing": wakeupLosesNothing[S, B],
	}
}

func wakeupEndsATurn[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	x.append(0, 3000)
	l := x.reads(source, split)
	l.backlog()
	l.limits = sdk.TurnLimits{Records: 1 << 30, Bytes: 1 << 40, Duration: time.Hour}
	const more = 16
	counted := -1
	l.out.before = func() {
		if counted < 0 {
			counted = 0
			l.reader.Wakeup()
		} else if counted++; counted > more {
			l.urgent.Store(true) // it has failed, and is to end
		}
	}
	for range 100 { // until a turn has something to emit
		if _, err := l.poll(); err != nil {
			x.stop("Poll: %v", err)
		}
		if counted >= 0 {
			break
		}
		l.backlog()
	}
	switch {
	case counted < 0:
		x.stop("no record came")
	case counted > more:
		x.fail("after Wakeup the turn went on for more than %d records", more)
	}
}

// wakeupLosesNothing wakes from other goroutines, all the time and at all moments.
func wakeupLosesNothing[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.newLoop(source)
	l.reader.Wakeup() // nobody is there yet
	l.open()
	l.add(split)
	random := rand.New(rand.NewPCG(1, 1))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.IntN(3)) * time.Millisecond):
				l.reader.Wakeup()
			}
		}
	}()
	for i := range 100 {
		x.append(0, 1+i%7)
		// Wakeups that follow each other faster than the system answers keep a fetch from ever being done, so that only those count
		// which the system had time between.
		for wake := range 10 {
			l.reader.Wakeup()
			if wake%3 == 0 {
				if _, err := l.poll(); err != nil {
					x.stop("Poll: %v", err)
				}
			}
			if wake%4 == 0 {
				l.idle(time.Duration(wake) * time.Millisecond)
			}
		}
	}
	close(stop)
	<-stopped
	if missing := x.total() - len(l.out.texts); missing > 0 {
		if _, err := l.drive(x.inTime(), func() bool { return len(l.out.texts) >= x.total() }); err != nil {
			x.fail("after a thousand wakeups %d of %d records came, then: %v", len(l.out.texts), x.total(), err)
		}
	}
	x.everything(l.out.texts)
	l.close()
	l.reader.Wakeup() // it is late
}

func noLostAvailability[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	l := x.reads(source, x.splits(source, 2)...)
	random := rand.New(rand.NewPCG(2, 2))
	stalled := false
	for range x.rounds(1000) {
		switch random.IntN(8) {
		case 0, 1, 2:
			x.append(random.IntN(2), 1+random.IntN(3))
		case 3:
			l.reader.Wakeup()
		case 4:
			if stalled = !stalled; stalled {
				x.b.Stall()
			} else {
				x.b.Resume()
			}
		case 5:
			l.idle(time.Duration(random.IntN(50)) * time.Millisecond)
		default:
			// Only what an engine would: after a ring, or when the last poll said that there is more.
			if _, err := l.drive(time.Duration(random.IntN(20))*time.Millisecond, func() bool { return false }); err != nil && !errors.Is(err, errQuiet) {
				x.stop("Poll: %v", err)
			}
		}
	}
	x.b.Resume()
	if _, err := l.drive(x.inTime(), func() bool { return len(l.out.texts) >= x.total() }); err != nil {
		x.stop("%d of %d records came when polls followed rings only, then: %v", len(l.out.texts), x.total(), err)
	}
	x.everything(l.out.texts)
}

func idleReaderWaits[S sdk.Split, B Backend](x *trial[S, B]) {
	source, split := x.one()
	l := x.reads(source, split)
	l.rest(time.Second)
	const span, most = 10 * time.Minute, 600
	quiet := func(what string) {
		before := l.ctx.rings.Load()
		l.rest(span)
		if n := l.ctx.rings.Load() - before; n > most {
			x.fail("%s rang the doorbell %d times in %s, more than once a second", what, n, span)
		}
	}
	quiet("a reader without data")
	x.b.Stall()
	quiet("a reader whose system hangs")
	x.b.Resume()
	x.append(0, 5)
	l.take(5)
	x.everything(l.out.texts)
}
