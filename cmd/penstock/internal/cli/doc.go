// Package cli is the penstock command: what it prints, how it reacts to signals, and how it exits.
//
// [Main] runs one command line within a [Process], which stands for everything that a process has: arguments, streams,
// environment, signals. So tests run the whole command without starting a process.
//
// Exit codes: 0 for success, also of a stop with a savepoint; 1 for a failure; 2 for a bad job file or command line; 130
// when a job was abandoned.
package cli
