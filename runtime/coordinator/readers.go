package coordinator

import (
	"maps"
	"slices"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// ReaderUp says that an attempt takes commands. The loop asks it to register.
func (l *Loop) ReaderUp(id sdk.ReaderID, attempt protocol.Attempt, mailbox Mailbox, stats *telemetry.Reader) {
	l.inbox.put("reader up", func() error {
		if old := l.targets[id]; old != nil && old.attempt > attempt {
			return nil
		}
		t := &target{id: id, attempt: attempt, mailbox: mailbox, stats: stats}
		l.targets[id] = t
		l.control(t, protocol.Register, protocol.RegisterPayload{})
		return nil
	})
}

// ReaderDown says that an attempt is over. Its assignments stay in the tracker until the next attempt registers: only
// then it is known what that one was restored with (FLINK-20290).
func (l *Loop) ReaderDown(id sdk.ReaderID, attempt protocol.Attempt) {
	l.inbox.put("reader down", func() error {
		if t := l.targets[id]; t != nil && t.attempt == attempt {
			delete(l.targets, id)
			l.countReaders()
		}
		return nil
	})
}

// registered takes a reader's answer.
func (l *Loop) registered(id sdk.ReaderID, attempt protocol.Attempt, answer reader.Registration) error {
	t := l.targets[id]
	if t == nil || t.attempt != attempt || t.answer != nil {
		l.cfg.Stats.StaleResults.Inc()
		return nil
	}
	t.answer = &answer
	l.cfg.Stats.Registrations.Inc()
	if l.reconciled {
		l.rejoin(t)
		return nil
	}
	if l.allAnswered() {
		l.reconcile()
	}
	return nil
}

func (l *Loop) allAnswered() bool {
	if len(l.targets) < l.cfg.Parallelism {
		return false
	}
	for _, t := range l.targets {
		if t.answer == nil {
			return false
		}
	}
	return true
}

// ids of everything that a reader holds or has finished.
func held(answers ...*reader.Registration) map[sdk.SplitID]bool {
	ids := map[sdk.SplitID]bool{}
	for _, a := range answers {
		for _, h := range a.Owned {
			ids[h.Split.ID] = true
		}
		for _, h := range a.Finished {
			ids[h.Split.ID] = true
		}
	}
	return ids
}

// beyond lists what a reader holds or has finished that no completed checkpoint contains. A reader may not have heard yet that
// the restored checkpoint completed: what that says to have ended is durable all the same.
func (l *Loop) beyond(a *reader.Registration) []protocol.Split {
	var out []protocol.Split
	for _, h := range slices.Concat(a.Owned, a.Finished) {
		if !h.Durable && !l.ended[h.Split.ID] {
			out = append(out, h.Split)
		}
	}
	return out
}

func info(t *target) sdk.ReaderInfo {
	in := sdk.ReaderInfo{ID: t.id}
	for _, h := range t.answer.Owned {
		in.Splits = append(in.Splits, h.Split.ID)
	}
	for _, h := range t.answer.Finished {
		in.Finished = append(in.Finished, h.Split.ID)
	}
	return in
}

// reconcile starts the epoch: it brings the restored cut and what the readers have since done together, before the
// enumerator may assign anything.
//
// What a reader holds beyond the restored checkpoint is adopted into the tracker as applied but not included. Were it only
// taken out of the enumerator's state, a later failover of that reader to the same checkpoint would lose it.
func (l *Loop) reconcile() {
	l.reconciled = true
	targets := l.sorted()
	answers := make([]*reader.Registration, len(targets))
	for i, t := range targets {
		answers[i] = t.answer
		l.generation = max(l.generation, t.answer.Generation)
	}
	holds := held(answers...)
	now := l.cfg.Now()
	for _, t := range targets {
		adopted := l.beyond(t.answer)
		l.tracker.Adopt(t.id, t.attempt, l.cfg.Epoch, adopted, now)
		if len(adopted) > 0 {
			l.cfg.Stats.Reconciliations.Inc()
		}
	}
	l.owe()
	l.tell("start", l.enumerator.Start)
	if r := l.cfg.Restored; r != nil {
		l.tellFinished(evidence(r.Readers))
		l.giveBack(lost(r, holds))
	}
	for _, t := range targets {
		l.welcome(t)
	}
	// Only now: an enumerator that answers a request must know what every reader holds.
	for _, t := range targets {
		l.serve(t)
	}
	if !l.over() {
		l.cfg.Reports.Reconciled(l.cfg.Epoch)
	}
}

// lost lists the assignments of the cut that no reader has: neither by the watermark of the same cut, nor by holding the
// split today.
func lost(r *Restored, holds map[sdk.SplitID]bool) []protocol.Split {
	var back []protocol.Split
	for _, a := range r.Coordinator.Tracker {
		if coveredByCut(r.Readers, a) {
			continue
		}
		for _, s := range a.Splits {
			if !holds[s.ID] {
				back = append(back, s)
			}
		}
	}
	return back
}

func coveredByCut(readers []protocol.ReaderState, a protocol.Assignment) bool {
	for _, r := range readers {
		if r.Reader != a.Reader || len(r.Metadata.Lineage) == 0 {
			continue
		}
		for _, m := range r.Metadata.Watermarks {
			if covered(a, r.Metadata.Lineage[len(r.Metadata.Lineage)-1], m) {
				return true
			}
		}
	}
	return false
}

func evidence(readers []protocol.ReaderState) []protocol.Split {
	var out []protocol.Split
	for _, r := range readers {
		out = append(out, r.Finished...)
	}
	return out
}

// rejoin takes a new attempt of one reader into a running epoch: what the old one was sent and the new one does not hold
// goes back to the enumerator.
func (l *Loop) rejoin(t *target) {
	holds := held(t.answer)
	back := l.tracker.Reset(t.id, func(id sdk.SplitID) bool { return holds[id] })
	if len(back) > 0 {
		l.cfg.Stats.Reconciliations.Inc()
	}
	l.tracker.Adopt(t.id, t.attempt, l.cfg.Epoch, l.beyond(t.answer), l.cfg.Now())
	l.giveBack(back)
	l.welcome(t)
	l.serve(t)
}

// owe notes that the enumerator has splits again, or may have: readers that have ended are not the end of the job. Enumerators
// that never say that no more follow are not waited for.
func (l *Loop) owe() { l.owing = l.generation > 0 }

func (l *Loop) giveBack(splits []protocol.Split) {
	if len(splits) == 0 {
		return
	}
	l.owe()
	l.cfg.Stats.ReturnedSplits.Add(uint64(len(splits)))
	l.tell("return splits", func() error { return l.enumerator.ReturnSplits(splits) })
}

// welcome makes t known to the enumerator.
func (l *Loop) welcome(t *target) {
	t.registered, t.open = true, true
	l.countReaders()
	l.tell("add reader", func() error { return l.enumerator.AddReader(info(t)) })
}

// serve does what waited for that.
func (l *Loop) serve(t *target) {
	l.flush(t)
	l.serveRequest(t)
}

// serveRequest tells the enumerator that t wants a split, once t is known to it.
func (l *Loop) serveRequest(t *target) {
	if t.request {
		t.request = false
		l.tell("split request", func() error { return l.enumerator.HandleSplitRequest(t.id) })
	}
}

func (l *Loop) countReaders() {
	n := 0
	for _, t := range l.targets {
		if t.registered {
			n++
		}
	}
	l.cfg.Stats.Readers.Set(int64(n))
}

func (l *Loop) sorted() []*target {
	return slices.SortedFunc(maps.Values(l.targets), func(a, b *target) int { return int(a.id - b.id) })
}

// readerReport serves what a reader reported since the last look.
func (l *Loop) readerReport(id sdk.ReaderID, s slot) {
	t := l.targets[id]
	if t == nil || t.attempt != s.attempt {
		l.cfg.Stats.StaleResults.Inc()
		return
	}
	if s.mark != nil {
		l.tracker.Applied(id, s.attempt, *s.mark)
	}
	t.request = t.request || s.request
	if !t.registered {
		return // the request is kept; events promise nothing
	}
	l.serveRequest(t)
	for _, e := range s.events {
		l.tell("reader event", func() error { return l.enumerator.HandleReaderEvent(id, e) })
	}
}
