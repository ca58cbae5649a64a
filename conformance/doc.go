// Package conformance holds what proves that the runtime and its connectors keep their promises.
//
// The program in crash kills the command at random moments and checks its committed output. Package simulation runs the engine
// itself through seeded faults and crashes, in virtual time. The folder peers is a module of its own: it measures the command beside other
// Go programs.
package conformance
