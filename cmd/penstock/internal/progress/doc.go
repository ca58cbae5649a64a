// Package progress tells a person how a job is doing.
//
// A [Screen] owns the terminal, or the stream that stands in its place: lines stay, and one status line below them is
// overwritten for as long as there is a terminal. A [Meter] turns snapshots of a job's numbers into the status.
package progress
