package simulation

import "time"

// Jump is a wall clock that is set, or a machine that was suspended: from a moment of the life on, the clock that the engine
// looks at shows another time, while timers go on as before.
type Jump struct {
	At, By time.Duration
}

// now is the clock of the process: that of the bubble, wrong by what the plan says.
func (l *life) now() time.Time {
	now := time.Now()
	by := l.plan.Skew
	for _, j := range l.plan.Jumps {
		if now.Sub(l.born) >= j.At {
			by += j.By
		}
	}
	return now.Add(by)
}
