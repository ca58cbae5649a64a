// Package mailbox is the bounded entrance of one reader attempt.
//
// Senders call [Mailbox.Offer] on their own goroutine. It validates the envelope, reserves count and bytes at three levels,
// allocates the mailbox sequence, publishes, and rings the doorbell of the reader loop. It never decodes a payload, calls
// a connector, sleeps, spins or waits. The loop takes commands in the order of their mailbox sequence with [Mailbox.Take].
//
// A full mailbox answers RetryLater: the sender keeps the command and offers it again. Barriers, checkpoint callbacks and
// the other controls that the engine itself bounds have capacity of their own; exhausting that is an invariant violation.
package mailbox
