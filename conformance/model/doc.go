// Package model holds the real coordinator and real readers against a reference that fits on two pages.
//
//	go test ./conformance/model -rapid.checks=10000
//
// A [World] is one coordinator epoch after the other with readers that come and go, joined by their real mailboxes. A test says
// what happens: assignments, ends of splits, checkpoints that complete or abort, deaths, other parallelisms; whose commands are
// refused, delivered twice, or lose their acknowledgement; and which reader does not get to its commands for a while.
//
// The reference (reference.go) knows nothing of mailboxes, sequences, watermarks, epochs or trackers. For each split it knows where the split is,
// and which effects may follow: what the connector is told has to be one of them. Whenever a checkpoint completes, and when
// everything has come to rest, both have to agree on every split.
package model
