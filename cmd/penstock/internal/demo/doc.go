// Package demo shows in a few seconds what Penstock is for: it reads a topic into files, kills the job half way with
// SIGKILL, starts it again, and proves that every record is there once, in order.
//
// Broker and job run in processes of their own, so that the kill is a real one. The proof trusts nothing that the engine
// says: it reads the committed files and compares them with the data set.
package demo
