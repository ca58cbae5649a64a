// Package faults kills readers and coordinators of the real engine at the eleven points of a command's and a checkpoint's life
// at which it hurts most, and looks whether anything is lost, repeated, or owned twice.
//
//	go test ./conformance/faults
//
// # The cells
//
// [Cells] lists every combination of
//
//   - a point: the eleven of package runtime/seam, from the creation of an assignment to the moment at which a checkpoint is
//     durable and nobody knows;
//   - who dies there and then: the reader that it is about, the coordinator, or both;
//   - what becomes of the checkpoint that is under way, or else of the next one: it completes, it times out and later ones
//     complete, or neither it nor any other ever ends;
//   - the parallelism with which the job goes on.
//
// # One cell
//
// Two readers read ten splits, of which four appear while the job runs; a checkpoint is taken every five milliseconds of virtual
// time. When the point has been reached often enough that checkpoints stand already, the strike comes. The engine recovers what it
// can, and a little later the process dies. The next one goes on with the parallelism of the cell and reads everything.
//
// The world around the engine, and what checks it, is that of package simulation. Beyond what is checked there, [Cell.Check] looks
// whether the strike really happened: that the point was reached, that who was to die did, and that the checkpoint had its fate.
package faults
