package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// edit replaces one piece of text of one file of the Go runtime.
type edit struct {
	file     string // below GOROOT/src
	old, new string
	why      string
}

// addedFile is a file that the runtime does not have.
const addedFile = "runtime/seeded.go"

// added is what the edits call. A choice is drawn from the seed only in a bubble, once SeedBubbles was called: outside of
// bubbles, where real time decides, draws would come in another order each time.
const added = `package runtime

import "internal/runtime/math"

var seeded struct {
	on    bool
	state uint64
	more  uint64
}

// SeedBubbles makes every choice that the runtime takes for a goroutine in a bubble follow from seed. There may be one
// processor and one bubble.
func SeedBubbles(seed uint64) { seeded.on, seeded.state, seeded.more = true, seed, seed }

// seededNext is for choices about goroutines, channels and timers.
//
//go:nosplit
func seededNext() uint64 {
	seeded.state += 0xa0761d6478bd642f
	seeded.more = seeded.state
	hi, lo := math.Mul64(seeded.state, seeded.state^0xe7037ed1a0b428db)
	return hi ^ lo
}

// seededMore is for maps, and changes nothing about what seededNext says next: a map that is made when something is used for
// the first time in a process must not make the first simulation differ from the second.
//
//go:nosplit
func seededMore() uint64 {
	seeded.more += 0x9e3779b97f4a7c15
	hi, lo := math.Mul64(seeded.more, seeded.more^0xe7037ed1a0b428db)
	return hi ^ lo
}

//go:nosplit
func inSeededBubble() bool { return seeded.on && getg().bubble != nil }

// seededPut moves the goroutine at the end of the run queue to a place among those of its bubble. Others, of the garbage
// collector for example, come and go with real time: they are not counted.
func seededPut(pp *p, h, t uint32) {
	n := uint32(len(pp.runq))
	var places [len(pp.runq)]uint32
	k := uint32(0)
	for i := h; i != t+1; i++ {
		if gp := pp.runq[i%n].ptr(); gp != nil && gp.bubble != nil {
			places[k] = i % n
			k++
		}
	}
	if k > 1 {
		at := places[uint32(seededNext()>>32)%k]
		pp.runq[at], pp.runq[t%n] = pp.runq[t%n], pp.runq[at]
	}
}
`

var edits = []edit{
	{
		"runtime/rand.go", "\tmp := getg().m\n\tc := &mp.chacha8\n\tfor {",
		"\tif inSeededBubble() {\n\t\treturn seededMore()\n\t}\n\tmp := getg().m\n\tc := &mp.chacha8\n\tfor {",
		"where the walk through a map begins, and math/rand",
	},
	{
		"runtime/rand.go", "\tseed := &globalRand.seed\n\tif len(startupRand) >= 16 &&",
		"\tseed := &globalRand.seed\n\tif seed[0] = 1; seed[0] == 1 {\n\t} else if len(startupRand) >= 16 &&",
		"the hash of map keys, which is chosen when the process starts",
	},
	{
		"runtime/select.go", "\t\tj := cheaprandn(uint32(norder + 1))\n",
		"\t\tj := uint32(0)\n\t\tif inSeededBubble() {\n\t\t\tj = uint32(seededNext()>>32) % uint32(norder+1)\n\t\t} else {\n\t\t\tj = cheaprandn(uint32(norder + 1))\n\t\t}\n",
		"which ready case a select takes",
	},
	{
		"runtime/time.go", "\t\tt.isFake = true\n\t}\n\tt.modify(when, period, f, arg, 0)\n",
		"\t\tt.isFake = true\n\t\tif seeded.on {\n\t\t\tt.rand = uint32(seededNext())\n\t\t}\n\t}\n\tt.modify(when, period, f, arg, 0)\n",
		"the order of timers of the same instant",
	},
	{ // A select adds the timers of its channels in the order of their addresses. So they are not drawn for there.
		"runtime/time.go", "\t\tif t.isFake {\n", "\t\tif t.isFake && !seeded.on {\n",
		"a new order of timers each time that they are waited for",
	},
	{
		"runtime/proc.go", "const forcePreemptNS = 10 * 1000 * 1000 // 10ms", "const forcePreemptNS = 60 * 1000 * 1000 * 1000",
		"when a goroutine is interrupted: never, unless it spins",
	},
	{
		"runtime/proc.go", "\tif randomizeScheduler && next && randn(2) == 0 {\n",
		"\tif next && seeded.on && (gp.bubble == nil || seededNext()&1 == 0) {\n\t\tnext = false\n\t}\n\tif randomizeScheduler && next && randn(2) == 0 {\n",
		"whether a goroutine that was woken runs at once",
	},
	{
		"runtime/proc.go", "\t\tpp.runq[t%uint32(len(pp.runq))].set(gp)\n\t\tatomic.StoreRel(&pp.runqtail, t+1) // store-release, makes the item available for consumption\n",
		"\t\tpp.runq[t%uint32(len(pp.runq))].set(gp)\n\t\tif seeded.on && gp.bubble != nil {\n\t\t\tseededPut(pp, h, t)\n\t\t}\n\t\tatomic.StoreRel(&pp.runqtail, t+1) // store-release, makes the item available for consumption\n",
		"which goroutine runs next",
	},
}

// writeOverlay writes edited copies of the runtime's files into dir and returns the file that tells the compiler of them.
func writeOverlay(goroot, dir string) (string, error) {
	src := filepath.Join(goroot, "src")
	texts := map[string]string{addedFile: added}
	for _, e := range edits {
		text, ok := texts[e.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(src, filepath.FromSlash(e.file)))
			if err != nil {
				return "", err
			}
			text = string(data)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("%s of this toolchain has %d times, not once, the text that decides %s:\n%s\nLook for what does in %s, and change the edit in overlay.go",
				e.file, n, e.why, e.old, e.file)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(src, filepath.FromSlash(file))] = to
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}
