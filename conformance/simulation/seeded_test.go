//go:build seeded

package simulation_test

import "runtime"

// seededRuntime: the order of goroutines follows from the seed. See package sim.
const seededRuntime = true

// seedRuntime begins a simulation in which all of the runtime's choices follow from seed.
func seedRuntime(seed uint64) { runtime.SeedBubbles(seed) }
