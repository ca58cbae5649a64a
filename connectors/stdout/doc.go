// Package stdout is a sink that prints records, at least once: for a look at a topic, for pipes, for trying things out.
//
// Every batch is printed before Write returns, in one piece, so nothing waits for a checkpoint and lines of several tasks
// never mix. After a crash the records since the last checkpoint are printed again.
package stdout
