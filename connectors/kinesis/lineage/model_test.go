package lineage

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/penstock-dev/penstock/sdk"
)

// TestModel walks a stream that is resharded, readers, checkpoints and crashes at random. Whatever happens, a shard is given out only when
// the end of its parents is durable, never twice, and at the end everything was read.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":           func(*rapid.T) { m.check() },
			"reshard":    m.reshard,
			"scan":       func(*rapid.T) { m.scan() },
			"assign":     m.assign,
			"read":       m.read,
			"resolve":    func(*rapid.T) { m.resolve() },
			"cut":        func(*rapid.T) { m.cut() },
			"complete":   func(*rapid.T) { m.complete() },
			"crash":      func(*rapid.T) { m.crash() },
			"readerDies": m.readerDies,
		})
		m.drain()
	})
}

const modelReaders = 2

// model is the world around a topology: the true stream, what readers hold and have finished, and the checkpoints.
type model struct {
	t      *rapid.T
	stream []Shard
	top    *Topology
	latest bool

	held     map[string]sdk.ReaderID
	finished map[string]bool // evidence that no completed checkpoint contains
	durable  map[string]bool // ended, and a completed checkpoint contains it
	starts   map[string]Position

	next      sdk.CheckpointID
	pending   *savedModel
	completed *savedModel
}

// savedModel is a checkpoint: one cut through all of it.
type savedModel struct {
	id       sdk.CheckpointID
	state    sdk.VersionedBytes
	held     map[string]sdk.ReaderID
	finished map[string]bool
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, latest: rapid.Bool().Draw(t, "latest"), next: 1}
	for i := range rapid.IntRange(1, 3).Draw(t, "shards") {
		m.stream = append(m.stream, Shard{ID: fmt.Sprintf("s%03d", i)})
	}
	m.begin(New(m.config()), nil)
	return m
}

func (m *model) config() Config { return Config{Parallelism: modelReaders, Misses: 1} }

func (m *model) begin(top *Topology, from *savedModel) {
	m.top, m.pending = top, nil
	m.held, m.finished = map[string]sdk.ReaderID{}, map[string]bool{}
	if from != nil {
		m.held, m.finished = maps.Clone(from.held), maps.Clone(from.finished)
	}
	m.durable = map[string]bool{}
	for _, n := range top.Nodes() {
		if n.State == Completed {
			m.durable[n.ID] = true
		}
	}
}

func (m *model) shard(id string) *Shard {
	i := slices.IndexFunc(m.stream, func(s Shard) bool { return s.ID == id })
	return &m.stream[i]
}

func (m *model) reshard(t *rapid.T) {
	var openIDs []string
	for _, s := range m.stream {
		if !s.Closed {
			openIDs = append(openIDs, s.ID)
		}
	}
	if len(m.stream) > 24 {
		t.Skip("large enough")
	}
	name := func() string { return fmt.Sprintf("s%03d", len(m.stream)) }
	victim := rapid.SampledFrom(openIDs).Draw(t, "victim")
	m.shard(victim).Closed = true
	if other := rapid.SampledFrom(openIDs).Draw(t, "other"); other != victim {
		m.shard(other).Closed = true
		m.stream = append(m.stream, Shard{ID: name(), Parents: []string{victim, other}})
		return
	}
	for range 2 {
		m.stream = append(m.stream, Shard{ID: name(), Parents: []string{victim}})
	}
}

func (m *model) scan() {
	initial := Initial{Position: FromTrimHorizon()}
	if m.latest {
		initial = Initial{}
	}
	changes, err := m.top.Apply(m.top.Begin(), Scan{Created: 1, Shards: slices.Clone(m.stream)}, func(Shard) Initial { return initial })
	if err != nil || len(changes.Gone)+len(changes.Lost) > 0 {
		m.t.Fatalf("scan: %+v, error %v", changes, err)
	}
	if changes.First {
		m.starts = map[string]Position{}
	}
}

func (m *model) resolve() {
	id, shards := m.top.Batch()
	answer := map[string]Position{}
	for _, s := range shards {
		answer[s] = After(fmt.Sprint(100 + m.next))
	}
	if applied, err := m.top.Resolve(id, answer); err != nil || applied != (len(shards) > 0) {
		m.t.Fatalf("resolve %v: applied %t, error %v", shards, applied, err)
	}
}

func (m *model) assign(t *rapid.T) {
	for _, n := range m.top.Ready() {
		if rapid.Bool().Draw(t, "wait") {
			continue
		}
		m.give(n, sdk.ReaderID(rapid.IntRange(0, modelReaders-1).Draw(t, "reader")))
	}
}

func (m *model) give(n Node, reader sdk.ReaderID) {
	if _, twice := m.held[n.ID]; twice || m.finished[n.ID] || m.durable[n.ID] {
		m.t.Fatalf("%s is given out although it is held, finished or durable", n.ID)
	}
	for _, p := range m.shard(n.ID).Parents {
		if !m.durable[p] {
			m.t.Fatalf("%s is given out before the end of %s is durable", n.ID, p)
		}
	}
	if !n.Position.Concrete() {
		m.t.Fatalf("%s is given out without a position", n.ID)
	}
	if m.completed == nil {
		m.t.Fatalf("%s is given out before any checkpoint completed", n.ID)
	}
	// A start that was used once is used for ever.
	if before, ok := m.starts[n.ID]; ok && before != n.Position {
		m.t.Fatalf("%s began at %s and begins at %s", n.ID, before, n.Position)
	}
	m.starts[n.ID] = n.Position
	if err := m.top.Assigned(n.ID, reader); err != nil {
		m.t.Fatal(err)
	}
	m.held[n.ID] = reader
}

// read ends a closed shard.
func (m *model) read(t *rapid.T) {
	for _, id := range slices.Sorted(maps.Keys(m.held)) {
		if m.shard(id).Closed && rapid.Bool().Draw(t, "end") {
			delete(m.held, id)
			m.finished[id] = true
			m.top.Ended(id, m.childrenOf(id))
		}
	}
}

func (m *model) childrenOf(id string) (children []string) {
	for _, s := range m.stream {
		if slices.Contains(s.Parents, id) {
			children = append(children, s.ID)
		}
	}
	return children
}

func (m *model) cut() {
	m.pending = &savedModel{id: m.next, state: m.top.Encode(), held: maps.Clone(m.held), finished: maps.Clone(m.finished)}
	m.top.Snapshotted(m.next)
	m.next++
}

func (m *model) complete() {
	p := m.pending
	if p == nil {
		return
	}
	m.pending, m.completed = nil, p
	for _, id := range slices.Sorted(maps.Keys(p.finished)) {
		if m.finished[id] {
			m.durable[id] = true
			delete(m.finished, id)
			m.top.Finished(id, AtEnd, m.childrenOf(id))
		}
	}
	m.top.Durable(p.id)
}

// crash goes back to the last completed checkpoint.
func (m *model) crash() {
	c := m.completed
	if c == nil {
		m.begin(New(m.config()), nil)
		return
	}
	top, err := Decode(c.state, m.config())
	if err != nil {
		m.t.Fatal(err)
	}
	m.begin(top, c)
	for _, id := range slices.Sorted(maps.Keys(c.finished)) { // restored evidence is durable
		delete(m.finished, id)
		m.durable[id] = true
		top.Finished(id, AtEnd, nil)
	}
	for r := range sdk.ReaderID(modelReaders) {
		m.register(r)
	}
}

func (m *model) register(r sdk.ReaderID) {
	var held []string
	for _, id := range slices.Sorted(maps.Keys(m.held)) {
		if m.held[id] == r {
			held = append(held, id)
		}
	}
	if err := m.top.Registered(r, held, nil); err != nil {
		m.t.Fatal(err)
	}
}

// readerDies takes a reader back to the last completed checkpoint, alone: what it got since is returned, and what it ended since it holds
// again, or it is returned.
func (m *model) readerDies(t *rapid.T) {
	r := sdk.ReaderID(rapid.IntRange(0, modelReaders-1).Draw(t, "reader"))
	m.pending = nil // a checkpoint under way aborts
	var back []string
	for id, owner := range m.held {
		if owner == r && (m.completed == nil || m.completed.held[id] != r) {
			back = append(back, id)
		}
	}
	for id := range m.finished { // whose they were does not matter to the topology
		delete(m.finished, id)
		back = append(back, id)
	}
	slices.Sort(back)
	for _, id := range back {
		delete(m.held, id)
	}
	m.register(r)
	for _, id := range back {
		if !m.top.Returned(id, m.starts[id], HashRange{}) {
			m.t.Fatalf("%s was returned and is taken for completed", id)
		}
	}
}

func (m *model) check() {
	nodes := map[string]Node{}
	for _, n := range m.top.Nodes() {
		nodes[n.ID] = n
	}
	for id := range m.held {
		if n := nodes[id]; !n.Held || n.State != Active && n.State != Draining {
			m.t.Fatalf("%s is with a reader and the topology has it as %+v", id, n)
		}
	}
	again, err := Decode(m.top.Encode(), m.config())
	if err != nil {
		m.t.Fatal(err)
	}
	if a, b := m.top.Encode(), again.Encode(); string(a.Data) != string(b.Data) {
		m.t.Fatalf("encoded %x, decoded and encoded again %x", a.Data, b.Data)
	}
}

// drain ends the stream and lets everything happen that still can.
func (m *model) drain() {
	for i := range m.stream {
		m.stream[i].Closed = true
	}
	for range 3 * len(m.stream) {
		m.scan()
		m.resolve()
		m.cut()
		m.complete()
		for _, n := range m.top.Ready() {
			m.give(n, 0)
		}
		for _, id := range slices.Sorted(maps.Keys(m.held)) {
			delete(m.held, id)
			m.finished[id] = true
			m.top.Ended(id, nil)
		}
		m.cut()
		m.complete()
	}
	for _, s := range m.stream {
		if !m.durable[s.ID] {
			n, _ := m.top.Node(s.ID)
			m.t.Fatalf("%s was never read: %+v", s.ID, n)
		}
	}
}
