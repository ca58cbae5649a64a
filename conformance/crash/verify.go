package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// report is what the committed files hold.
type report struct {
	kills, losses                     int // of the command, of brokers
	files, records                    int
	lost, repeated, aborted, disorder int
	unknown                           int
}

func (r report) String() string {
	return fmt.Sprintf("%d kills, %d of brokers: %d records in %d files, %d lost, %d repeated, %d of aborted transactions, %d out of order",
		r.kills, r.losses, r.records, r.files, r.lost, r.repeated, r.aborted, r.disorder)
}

func (r report) check() error {
	if r.lost+r.repeated+r.aborted+r.disorder+r.unknown > 0 {
		return fmt.Errorf("the output is wrong: %s, %d unknown", r, r.unknown)
	}
	return nil
}

// verify reads every file that is visible: whose name, and whose folders' names, do not begin with a dot.
func verify(dir string, partitions, records int) (report, error) {
	v := newVerifier(partitions, records)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		return v.file(path)
	})
	return v.count(), err
}

type verifier struct {
	report
	seen [][]uint8 // how often record i of partition p was seen
}

func newVerifier(partitions, records int) *verifier {
	v := &verifier{seen: make([][]uint8, partitions)}
	for p := range v.seen {
		n := records / partitions
		if p < records%partitions {
			n++
		}
		v.seen[p] = make([]uint8, n)
	}
	return v
}

// count sums up what was lost and repeated, once everything was looked at.
func (v *verifier) count() report {
	for _, part := range v.seen {
		for _, n := range part {
			switch {
			case n == 0:
				v.lost++
			case n > 1:
				v.repeated += int(n) - 1
			}
		}
	}
	return v.report
}

func (v *verifier) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	v.files++
	last := map[int32]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var rec struct {
			Partition int32  `json:"partition"`
			Offset    int64  `json:"offset"`
			Value     string `json:"value"`
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return fmt.Errorf("%s: torn or foreign line %.100q: %w", path, lines.Text(), err)
		}
		if before, ok := last[rec.Partition]; ok && rec.Offset <= before {
			v.disorder++
		}
		last[rec.Partition] = rec.Offset
		v.record(rec.Partition, rec.Value)
	}
	return lines.Err()
}

func (v *verifier) record(partition int32, value string) {
	v.records++
	if value == "aborted" {
		v.aborted++
		return
	}
	part, number, _ := strings.Cut(value, "/")
	p, err1 := strconv.Atoi(part)
	i, err2 := strconv.Atoi(number)
	if err1 != nil || err2 != nil || int32(p) != partition || p >= len(v.seen) || i < 0 || i >= len(v.seen[p]) {
		v.unknown++
		return
	}
	if v.seen[p][i] < 255 {
		v.seen[p][i]++
	}
}
