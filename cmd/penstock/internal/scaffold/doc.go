// Package scaffold writes the beginning of a connector: a module of its own that compiles and passes the conformance suite, so that its author
// replaces what is there, a piece at a time, and sees at once what a change breaks.
//
// The files are the templates in the folder template; the test of this package generates a connector from them and runs its tests.
package scaffold
