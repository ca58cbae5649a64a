// Command sim runs simulations whose every step is decided by their seed, also the order of goroutines.
//
//	go run ./conformance/simulation/sim -seeds 5000        # seeds 1 to 5000, on all processors
//	go run ./conformance/simulation/sim -seed 84           # one seed again, exactly as before
//	go run ./conformance/simulation/sim -seed 84 -without 'life 1; life 0: sink commit fails'
//
// # Why it needs another runtime
//
// A plan says which faults happen, and virtual time says when. What is left to chance in Go is which of several goroutines runs
// first, which ready case a select takes, in which order timers of the same instant fire, where the walk through a map begins, and
// when a goroutine is interrupted. In a run that fails once in a thousand times, it is one of these that made it fail.
//
// So sim compiles the tests of package simulation with a few small edits of the Go runtime, given to the compiler as an overlay
// (go build -overlay): nothing is installed or changed on disk. Inside of a bubble of testing/synctest these choices are then drawn
// from the seed, and a goroutine is never interrupted. The order of goroutines is not only fixed but varied: each seed has another
// one. With one processor per process a seed is the same program every time; sim starts one process per processor.
//
// The edits name the text that they replace. With a toolchain that has other text there, sim says so and which edit it is;
// `go test ./conformance/simulation` needs none of this and goes on to work, with chance.
package main
