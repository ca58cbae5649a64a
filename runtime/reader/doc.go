// Package reader is the managed reader loop (Lane A): one goroutine that owns one reader attempt.
//
// The order of work is always the same: the terminal signal, then ordered controls in FIFO order, then at most one poll
// turn. The decisions are in a pure core ([core]); [Loop] is its driver and calls the connector. The loop never blocks in
// its output: it starts a turn only when the exchange has credit, and without credit it goes on serving controls. So an
// ordered control waits for at most one turn, also when the sink is stuck.
//
// A turn that takes too long is not the loop's to notice: a [Watchdog], shared by all readers of a process, wakes the
// connector at the hard limit and abandons the attempt at the cancellation timeout. An abandoned goroutine may go on for
// ever; its output, its mailbox and its reports are fenced, so whatever it does later changes nothing.
package reader
