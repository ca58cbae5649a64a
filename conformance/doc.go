// Package conformance tells whether a source keeps the contract of package sdk. A connector's test calls [Run]:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness[feed.Split, *system]{
//			Backend: newSystem,
//			Source:  func(b *system) sdk.Source[feed.Split] { return &feed.Source{HTTP: b.client()} },
//		})
//	}
//
// # What an author writes
//
// One type, a [Backend]: the system that the source reads, in the process of the test, with parts that become splits. The suite
// appends values to its parts, makes it hang and makes it answer again. What more it can do it says by having the methods of
// [Failer], [Dropper], [Grower] or [Counter]. Package inprocess has a network that hangs, fails and drops connections, so that a backend
// that is a server has only Append to write.
//
// # How it runs
//
// Each case has a backend of its own and runs in a bubble of testing/synctest: time passes only when everybody waits, an hour of
// waiting costs nothing, and the same code gives the same result each time. A source that waits for a real network cannot run there; give it
// the connections of package inprocess. Run it with -race: the suite overlaps what an engine overlaps.
//
// A real server cannot be in a bubble. With [Harness.Wall] the cases in which it may differ from a double run beside it, on the clock of the
// wall, as far as they need no virtual time.
//
// # What it looks at
//
// [Cases] lists all cases with their purpose, the requirement that is tested, and the condition under which they pass. The groups are
//
//	reader      turns: budgets, wakeups, availability, refusals, added splits
//	end         the end of input, and the evidence for it
//	state       snapshots that cover exactly what was emitted
//	checkpoint  notices that come late, twice, or never
//	close       at any moment, and nothing left behind
//	codec       splits that later versions can read, and damage that is told
//	enumerator  discovery and assignment through failures and restores
//	engine      the real engine: deaths at eleven points, other parallelism
//	metrics     names, and how many
//
// A case that needs an ability which neither the source nor the backend has is skipped and says which. A case that fails says what was seen,
// what the contract is, what usually causes it, and where to look.
//
// # Beside it
//
// The packages below this one prove the engine itself: crash kills the command at random moments and checks its committed output,
// simulation runs the engine through seeded faults and crashes in virtual time, faults and model kill its parts between any two
// effects. The folder peers is a module of its own: it measures the command beside other Go programs. Package broken holds the sources
// with which this suite itself is tested.
package conformance
