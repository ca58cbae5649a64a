package checkpointtest

import (
	"bytes"
	"maps"
	"math/rand/v2"
)

// Fate decides, among n outcomes of something that was not synced, which one a crash leaves: 0 is that it was lost
// altogether, n-1 that it survived altogether.
type Fate func(n int) int

// Lose is the crash after which nothing survived that was not synced.
func Lose(int) int { return 0 }

// Keep is the crash after which everything survived: a process that died on a machine that did not.
func Keep(n int) int { return n - 1 }

// Random is a crash like any other; the same seed crashes alike.
func Random(seed uint64) Fate {
	rng := rand.New(rand.NewPCG(seed, 0))
	return rng.IntN
}

// Outcomes of the content of a file that was not synced since it changed.
const (
	contentLost = iota
	contentCut
	contentZeroed
	contentKept

	contents
)

// Crash returns the disk as it is after a crash at this moment. The crashed one is of no more use. Each change of a name
// since the last sync of the directory survives or not by itself, as does the content of each file, which may also be cut or
// have zeroes where data should be.
func (d *Disk) Crash(fate Fate) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	names := maps.Clone(d.stable)
	for _, c := range d.since {
		if fate(2) == 1 {
			c.apply(names)
		}
	}
	for name, f := range names {
		data := f.survivor(fate)
		after.files[name] = &file{data: data, stable: bytes.Clone(data)}
	}
	after.stable = maps.Clone(after.files)
	return after
}

// Kill returns the disk after the process died and the machine did not: nothing is lost, but what was not synced still is
// not, and a later crash may take it. The killed one is of no more use.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := NewDisk()
	after.files, after.stable, after.since = d.files, d.stable, d.since
	return after
}

func (f *file) survivor(fate Fate) []byte {
	if bytes.Equal(f.data, f.stable) {
		return bytes.Clone(f.data)
	}
	switch fate(contents) {
	case contentCut:
		return bytes.Clone(f.data[:fate(len(f.data)+1)])
	case contentZeroed:
		data := bytes.Clone(f.data)
		clear(data[fate(len(data)+1):])
		return data
	case contentKept:
		return bytes.Clone(f.data)
	default:
		return bytes.Clone(f.stable)
	}
}
