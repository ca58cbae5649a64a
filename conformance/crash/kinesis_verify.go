package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lineageReport is what the committed files hold of a stream that was resharded.
type lineageReport struct {
	kills, reshardings, shards      int
	files, records                  int
	lost, repeated, disorder, mixed int
	unknown                         int
	// fewest is through how many shards, one after the other, the key that saw the fewest went.
	fewest int
}

func (r lineageReport) String() string {
	return fmt.Sprintf("%d kills, %d reshardings: %d records of %d keys through %d shards (each key through %d or more) in %d files, %d lost, %d repeated, %d out of order, %d beside their parents' in a checkpoint",
		r.kills, r.reshardings, r.records, streamKeys, r.shards, r.fewest, r.files, r.lost, r.repeated, r.disorder, r.mixed)
}

// check reports a wrong output, and one that proves nothing because the keys stayed where they were.
func (r lineageReport) check(generations int) error {
	if r.lost+r.repeated+r.disorder+r.mixed+r.unknown > 0 {
		return fmt.Errorf("the output is wrong: %s, %d unknown", r, r.unknown)
	}
	if r.fewest < generations {
		return fmt.Errorf("a key went through %d shards only, want %d: %s", r.fewest, generations, r)
	}
	return nil
}

// committedFiles are the visible files in the order of commits: the names of the file sink sort by checkpoint, and there by task.
func committedFiles(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, stream+"-*.jsonl"))
}

// trail is what was seen of one key.
type trail struct {
	seen       []uint8 // how often each number was
	last       int     // the newest number
	shards     int     // that it went through, in turn
	shard      string  // the last of them
	checkpoint string  // of the last record
}

// verifyLineage reads the committed files in the order in which they were committed. The number of a record counts those of its key as they were
// written, so in that order the numbers of each key grow. A child is not read before a completed checkpoint contains the end of its parents: so no
// checkpoint holds records of a key from two shards.
func verifyLineage(dir string, written [streamKeys]int) (lineageReport, error) {
	var r lineageReport
	names, err := committedFiles(dir)
	if err != nil {
		return r, err
	}
	trails, shards := make([]trail, streamKeys), map[string]bool{}
	for k := range trails {
		trails[k] = trail{seen: make([]uint8, written[k]), last: -1}
	}
	for _, name := range names {
		if err := r.file(name, trails, shards); err != nil {
			return r, err
		}
	}
	r.shards, r.fewest = len(shards), len(shards)
	for _, t := range trails {
		r.fewest = min(r.fewest, t.shards)
		for _, n := range t.seen {
			switch {
			case n == 0:
				r.lost++
			case n > 1:
				r.repeated += int(n) - 1
			}
		}
	}
	return r, nil
}

func (r *lineageReport) file(name string, trails []trail, shards map[string]bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	r.files++
	checkpoint, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), stream+"-"), "-")
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var rec struct {
			Shard string `json:"shard"`
			Key   string `json:"key"`
			Value string `json:"value"`
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return fmt.Errorf("%s: torn or foreign line %.100q: %w", name, lines.Text(), err)
		}
		r.records++
		shards[rec.Shard] = true
		k := keyNumber(rec.Key)
		number, err := strconv.Atoi(rec.Value)
		if k < 0 || err != nil || number < 0 || number >= len(trails[k].seen) {
			r.unknown++
			continue
		}
		r.record(&trails[k], number, rec.Shard, checkpoint)
	}
	return lines.Err()
}

func (r *lineageReport) record(t *trail, number int, shard, checkpoint string) {
	if t.seen[number] < 255 {
		t.seen[number]++
	}
	if number <= t.last {
		r.disorder++
	}
	t.last = number
	if shard != t.shard {
		if checkpoint == t.checkpoint {
			r.mixed++
		}
		t.shards++
		t.shard = shard
	}
	t.checkpoint = checkpoint
}
