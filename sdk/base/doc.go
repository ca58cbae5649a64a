// Package base is what most sources embed: a reader that never blocks its loop, and an enumerator that discovers and
// assigns. A connector author writes what is special about a system and nothing about threads, locks or checkpoints.
//
// # A source on this package
//
// Four pieces, in the order in which they are usually written:
//
//  1. A split: which part of the system, and the next position in it. It names itself for ever with SplitID.
//  2. Discover: the complete list of splits that exist now. [NewEnumerator] calls it on a worker, now and then, keeps what is
//     known, assigns each split once, and survives failovers of either side ([EnumeratorConfig]).
//  3. A [SplitReader]: Fetch waits for data of the splits it was given and returns chunks of elements. For one that asks for
//     one split after the other a [Rota] is the rest of it.
//  4. Emit: turns one element into records, and moves the position past it.
//
// The pieces meet in the source's methods:
//
//	func (s *Source) Capability() sdk.Capability { return base.Capability("feed", "1.0.0") }
//
//	func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
//		return base.NewEnumerator(ctx, state, base.EnumeratorConfig[Split]{Discover: s.discover, Interval: time.Minute})
//	}
//
//	func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
//		return base.NewReader(ctx, base.Config[Item, Split, Split]{
//			Fetcher: func() (base.SplitReader[Item, Split], error) { return &fetcher{client: s.client}, nil },
//			Emit:    emit,
//		})
//	}
//
//	func emit(it Item, at *Split, out sdk.Output) error {
//		if out.Emit(sdk.Record{Value: it.Body, Time: it.Published}) {
//			at.Next = it.Seq + 1
//		}
//		return nil
//	}
//
// # Who runs where
//
//	fetcher goroutine ── immutable batches ──> hand-over ──> reader loop ── records ──> engine
//	 owns a SplitReader                        bounded        owns split state
//	        ^                                                     │
//	        └──────── pending changes, cancelled fetch ───────────┘
//
// Fetchers start with the first split that [Config.FetcherOf] gives them and live until Close. Everything an author
// writes runs either on a fetcher's goroutine (the SplitReader) or on the reader loop (Emit, conversions,
// OnCheckpoint, Release), never on both, so none of it needs a lock.
//
// # What the author promises
//
//  1. Fetch returns soon when its context ends, and a later Fetch goes on where it stopped. What it returned is never
//     changed again.
//  2. Fetch advances its own idea of the position; only Emit advances the state. A snapshot is the state.
//  3. Emit does not block, and does nothing more after out.Emit was refused.
//  4. Discover lists everything that exists, and gives each split that is not known a concrete position.
//
// # What the package promises
//
//  1. A fetched batch is emitted, or dropped because its split was removed or the reader closed; no wakeup loses one.
//  2. The end of input is told after everything was emitted, and never when something failed.
//  3. A known split is in one place: with the enumerator, or assigned. A snapshot holds those that wait.
//  4. Every queue is bounded, and nothing spins: an idle, paused or throttled fetcher waits.
package base
