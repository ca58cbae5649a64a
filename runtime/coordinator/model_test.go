package coordinator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// TestEverySplitIsInOnePlace walks at random through assignments, refused and lost deliveries, ends of splits, checkpoints that
// complete or abort while other things happen, and failovers of readers, the coordinator and both. After each completed cut, and at
// the end, every split is in exactly one place (invariant 13), or ended for good.
//
// A failing seed is told; run it alone with -run 'TestEverySplitIsInOnePlace/seed_17$'.
func TestEverySplitIsInOnePlace(t *testing.T) {
	t.Parallel()
	seeds := 400
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, rand.New(rand.NewPCG(uint64(seed), 1)))
				for range 80 {
					m.step()
				}
				m.settle()
			})
		})
	}
}

// model is the walk: the rig, and what is known from outside.
type model struct {
	*rig
	rng     *rand.Rand
	all     []string
	gone    map[string]bool // a completed checkpoint says that it ended
	last    *Restored       // of the newest completed checkpoint
	id      sdk.CheckpointID
	pending bool
	told    map[sdk.ReaderID]bool // whose part of the pending checkpoint was passed on
	history []string
}

func newModel(t *testing.T, rng *rand.Rand) *model {
	m := &model{rng: rng, gone: map[string]bool{}}
	for i := range 4 + rng.IntN(5) {
		m.all = append(m.all, fmt.Sprint("s", i))
	}
	m.rig = newRig(t, 1+rng.IntN(3), func(c *Config) { c.TrackerSplits = 3 + rng.IntN(8) })
	m.fresh()
	for _, rd := range m.readers {
		rd.begin(nil)
	}
	m.start()
	m.serve()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("history: %s", strings.Join(m.history, "; "))
		}
	})
	return m
}

// fresh lets an enumerator without saved state discover everything.
func (m *model) fresh() {
	script := m.script
	script.when("NewEnumerator", func() error {
		if m.cfg.Restored == nil {
			script.unassigned = slices.Clone(m.all)
		}
		return nil
	})
}

func (m *model) did(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

func (m *model) step() {
	rd := m.readers[m.rng.IntN(len(m.readers))]
	switch n := m.rng.IntN(20); n {
	case 0, 1, 2, 3:
		m.assignSome(rd)
	case 4, 5, 6, 7:
		synctest.Wait()
		m.did("reader %d serves", rd.id)
		rd.apply()
	case 8, 9:
		if len(rd.owned) > 0 {
			id := rd.owned[m.rng.IntN(len(rd.owned))].Split.ID
			m.did("reader %d ends %s", rd.id, id)
			rd.finish(id)
		}
	case 10:
		m.did("reader %d refuses", rd.id)
		rd.refuse(protocol.AddSplits)
	case 11:
		m.did("acknowledgements of reader %d are lost", rd.id)
		rd.script(func(e *protocol.Envelope) *protocol.Ack {
			if e.Kind != protocol.AddSplits || m.rng.IntN(2) == 0 {
				return nil
			}
			rd.admit(e)
			return &protocol.Ack{Status: protocol.RetryLater}
		})
	case 12, 13:
		m.did("reader %d is well, time passes", rd.id)
		rd.script(nil)
		<-time.After(100 * time.Millisecond)
	case 14, 15, 16:
		m.advanceCheckpoint()
	default:
		m.fail(rd)
	}
	synctest.Wait()
	if err := m.failed(); err != nil {
		m.t.Fatalf("the epoch failed: %v", err)
	}
}

// assignSome hands some of what is unassigned to a reader, as far as the engine takes it.
func (m *model) assignSome(rd *fakeReader) {
	k := 1 + m.rng.IntN(2)
	m.do(func() {
		s := m.script
		k := min(k, len(s.unassigned))
		if k == 0 {
			return
		}
		batch := s.unassigned[:k:k]
		if err := s.ctx.Assign(rd.id, typed(batch...)); err == nil {
			s.unassigned = s.unassigned[k:]
			m.did("assign %v to %d", batch, rd.id)
		}
	})
}

// advanceCheckpoint starts one, or passes parts on and ends it.
func (m *model) advanceCheckpoint() {
	if !m.pending {
		m.id++
		m.pending, m.told = true, map[sdk.ReaderID]bool{}
		m.did("cut %d", m.id)
		m.loop.Cut(m.id, protocol.Periodic)
		return
	}
	synctest.Wait()
	m.mu.Lock()
	_, ready := m.cuts[m.id]
	m.mu.Unlock()
	for _, rd := range m.readers {
		part, ok := rd.states[m.id]
		if ready = ready && ok; ok && !m.told[rd.id] {
			m.told[rd.id] = true
			m.loop.Included(m.id, rd.id, rd.attempt, part.Metadata.Watermarks)
		}
	}
	switch {
	case ready && m.rng.IntN(3) > 0:
		m.did("complete %d", m.id)
		m.pending, m.last = false, m.cut(m.id)
		for _, s := range evidence(m.last.Readers) {
			m.gone[string(s.ID)] = true
		}
		m.checkCut()
		if m.rng.IntN(4) == 0 {
			m.did("the coordinator fails before it hears of that")
			m.restart()
			if m.rng.IntN(2) == 0 {
				m.serve()
				m.failReader(m.readers[m.rng.IntN(len(m.readers))])
			}
			return
		}
		m.loop.Complete(m.id, evidence(m.last.Readers))
	case m.rng.IntN(4) == 0:
		m.abort()
	}
}

func (m *model) abort() {
	if m.pending {
		m.pending = false
		m.did("abort %d", m.id)
		m.loop.Abort(m.id)
	}
}

// checkCut: what the newest completed checkpoint says of every split.
func (m *model) checkCut() {
	for _, id := range m.all {
		places := everywhere(m.last, id)
		if len(places) == 1 || len(places) == 0 && m.gone[id] {
			continue
		}
		m.t.Fatalf("checkpoint %d has split %s in %v", m.id, id, places)
	}
}

// part is what the newest completed checkpoint has of a reader.
func (m *model) part(id sdk.ReaderID) *protocol.ReaderState {
	if m.last == nil {
		return nil
	}
	return &m.last.Readers[id]
}

// fail lets a reader, the coordinator, or everything fail over. A checkpoint under way is given up first.
func (m *model) fail(rd *fakeReader) {
	m.abort()
	kind := m.rng.IntN(4)
	if kind < 2 {
		m.failReader(rd)
	}
	if kind == 1 || kind == 2 {
		m.did("the coordinator fails")
		m.restart()
	}
	if kind == 3 {
		m.did("everything fails")
		for _, rd := range m.readers {
			rd.begin(m.part(rd.id))
		}
		m.restart()
	}
	if m.rng.IntN(2) == 0 {
		m.serve()
	}
}

func (m *model) failReader(rd *fakeReader) {
	m.did("reader %d fails", rd.id)
	m.loop.ReaderDown(rd.id, rd.attempt)
	rd.begin(m.part(rd.id))
	m.loop.ReaderUp(rd.id, rd.attempt, rd, &telemetry.Reader{})
}

func (m *model) restart() {
	m.loop.Fence()
	<-m.loop.Done()
	m.cfg.Epoch++
	m.cfg.Restored = m.last
	m.prepare()
	m.fresh()
	m.start()
}

// settle heals everything and counts.
func (m *model) settle() {
	for _, rd := range m.readers {
		rd.script(nil)
	}
	m.serve()
	<-time.After(time.Second)
	m.serve()
	where := map[string][]string{}
	m.do(func() {
		for _, id := range m.script.unassigned {
			where[id] = append(where[id], "enumerator")
		}
	})
	for _, rd := range m.readers {
		for _, h := range rd.owned {
			where[string(h.Split.ID)] = append(where[string(h.Split.ID)], fmt.Sprint("reader ", rd.id))
		}
		for _, h := range rd.finished {
			if id := string(h.Split.ID); !m.gone[id] {
				where[id] = append(where[id], "finished")
			}
		}
	}
	for _, id := range m.all {
		if got := where[id]; len(got) != 1 && !m.gone[id] || len(got) != 0 && m.gone[id] {
			m.t.Errorf("split %s is in %v, ended for good: %t", id, got, m.gone[id])
		}
	}
}
