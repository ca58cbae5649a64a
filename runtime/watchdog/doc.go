// Package watchdog looks after calls of connector code that may not return.
//
// Each loop notes in a [Clock] which call it is in and since when: one atomic store, no lock. One goroutine per process,
// [Watchdog.Run], compares the clocks with their limits: past the hard limit a turn is woken, past the cancellation limit
// the loop is abandoned.
package watchdog
