//go:build !seeded

package simulation_test

// seededRuntime: the order of goroutines is up to Go. See package sim.
const seededRuntime = false

func seedRuntime(uint64) {}
