// Command mutation breaks the rules of the runtime on purpose, one at a time, and shows which test notices.
//
// mutations.txt is the list: a rule, the lines that carry it, the lines without it, and the tests that must fail. A
// mutation never touches the tree: the changed file stands beside it and the compiler is told to read that one instead
// (go test -overlay). A mutation survives when its tests pass, and then the command fails. So it does when the lines are no
// longer found, when they do not compile, or when a package fails without one of its tests: nothing is proved then.
//
//	go run ./conformance/mutation              # all, a few minutes
//	go run ./conformance/mutation -only gate   # those whose rule contains "gate"
//	go run ./conformance/mutation -markdown    # the table of docs/reliability.md
//
// That every mutation still fits the code is a test of this package, so that the list cannot rot.
package main
