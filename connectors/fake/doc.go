// Package fake is a managed source that makes its records up. It needs no server, so it serves three ends: to try a
// pipeline, to measure what the engine itself costs, and to test an engine with faults that happen exactly where a script
// says.
//
// Record i of split s is a pure function of the seed, s and i ([Config.Record]), so whoever reads the output can tell,
// without having seen the input, whether every record is there once. Its value begins with the split and the index as text.
//
// A [Source] is made with [New]. What goes wrong is a list of [Fault] values: each names a record and what happens there,
// and how often, counted over all readers and restarts of one Source, because a fault that came back after every
// restart could be survived by none. Tests steer a Source while it runs: [Source.Triggered] tells when a fault struck,
// [Source.Release] frees what is stuck, and [Hooks] holds single fetches.
package fake
