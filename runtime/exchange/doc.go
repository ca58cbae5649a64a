// Package exchange joins reader tasks and sink tasks with bounded channels.
//
// A [Channel] has one sender, a reader loop, and one receiver, a sink loop. Neither ever blocks in it: the sender asks for
// credit before it starts a turn, and both are woken by their doorbells. What a turn emitted travels as one batch;
// batches come back to the sender for reuse.
//
// A [Router] is the sender's side of all channels of one reader: forward, rebalance or keyed. A [Gate] is the receiver's
// side of all channels of one sink task: it aligns barriers, so that everything behind a barrier waits in its channel until
// the barrier has arrived on all of them.
//
// Waking a parked goroutine costs more than moving a batch. A sender therefore rings only when a quarter of the credit is
// waiting or when it has nothing more to send ([Router.Flush]); a receiver rings a starved sender only when half of the
// credit is free again.
package exchange
