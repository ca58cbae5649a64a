package engine

import (
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// redistribute gives the unfinished splits of a checkpoint to n readers. With the same number each reader gets its own
// back; else splits are dealt out in the order of their ids, which depends on nothing but the set of splits.
func redistribute(m *protocol.Manifest, n int) []protocol.ReaderState {
	out := make([]protocol.ReaderState, n)
	for i := range out {
		out[i].Reader = sdk.ReaderID(i)
	}
	if m == nil {
		return out
	}
	if m.Parallelism == n {
		for _, r := range m.Readers {
			out[r.Reader] = r
		}
		return out
	}
	var splits []protocol.Split
	var generation uint64
	for _, r := range m.Readers {
		splits = append(splits, r.Splits...)
		generation = max(generation, r.Metadata.NoMoreSplitsGeneration)
	}
	slices.SortFunc(splits, func(a, b protocol.Split) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for i, s := range splits {
		out[i%n].Splits = append(out[i%n].Splits, s)
	}
	for i := range out {
		out[i].Metadata.NoMoreSplitsGeneration = generation
	}
	return out
}

// preparedOf is everything that a checkpoint prepared and that a restored sink has to commit again.
func preparedOf(m *protocol.Manifest) [][]byte {
	var out [][]byte
	for _, s := range sinksOf(m) {
		for _, p := range s.Prepared {
			out = append(out, p.Data)
		}
	}
	return out
}

// newest is the newest durable checkpoint, 0 when there is none.
func (j *job) newest() sdk.CheckpointID {
	if j.last == nil {
		return 0
	}
	return j.last.ID
}

func sinksOf(m *protocol.Manifest) []protocol.SinkState {
	if m == nil {
		return nil
	}
	return m.Sinks
}

// younger is what was prepared behind the newest durable checkpoint and must never become visible.
func younger(prepared []protocol.Prepared, m *protocol.Manifest) []protocol.Prepared {
	var out []protocol.Prepared
	for _, p := range prepared {
		if m == nil || p.Checkpoint > m.ID {
			out = append(out, p)
		}
	}
	return out
}

func evidenceOf(m *protocol.Manifest) []protocol.Split {
	var out []protocol.Split
	for _, r := range m.Readers {
		out = append(out, r.Finished...)
	}
	return out
}
