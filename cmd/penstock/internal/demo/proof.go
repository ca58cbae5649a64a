package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock-dev/penstock/connectors/jsonl"
	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/testdata/rides"
)

// Partitions of the demo's topic.
const Partitions = 4

// Proof is what was found in the committed files.
type Proof struct {
	Records    int // lines
	Missing    int
	Duplicates int
	Disorder   int // lines behind one of the same partition with a higher offset
	Changed    int // lines that differ from the data set
}

// Good reports that each of n records is there once, unchanged and in order.
func (p Proof) Good(n int) bool { return p == Proof{Records: n} }

func (p Proof) String() string {
	return fmt.Sprintf("%d records, %d missing, %d twice, %d out of order, %d changed", p.Records, p.Missing, p.Duplicates, p.Disorder, p.Changed)
}

// maxLine bounds a line; rides are much shorter.
const maxLine = 1 << 20

// Verify reads all committed files in dir, in the order of their names, and compares them with the first n rides.
func Verify(dir string, n int64) (Proof, error) {
	expected := make([][]rides.Ride, Partitions)
	for i := range n {
		r := rides.At(i)
		p := r.Partition(Partitions)
		expected[p] = append(expected[p], r)
	}
	v := verifier{expected: expected, seen: map[place]int{}, last: map[int32]int64{}}
	names, err := committed(dir)
	if err != nil {
		return Proof{}, err
	}
	for _, name := range names {
		if err := v.file(filepath.Join(dir, name)); err != nil {
			return v.proof, err
		}
	}
	for p, list := range expected {
		for o := range list {
			if v.seen[place{int32(p), int64(o)}] == 0 {
				v.proof.Missing++
			}
		}
	}
	return v.proof, nil
}

// committed lists the visible files; a directory that is not there yet has none.
func committed(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

type place struct {
	partition int32
	offset    int64
}

type verifier struct {
	expected [][]rides.Ride
	seen     map[place]int
	last     map[int32]int64
	proof    Proof
}

func (v *verifier) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		rec, err := jsonl.Decode(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		v.record(&rec)
	}
	return lines.Err()
}

func (v *verifier) record(rec *sdk.Record) {
	v.proof.Records++
	at := place{rec.Partition, rec.Offset}
	if v.seen[at]++; v.seen[at] > 1 {
		v.proof.Duplicates++
	}
	if last, ok := v.last[at.partition]; ok && at.offset <= last {
		v.proof.Disorder++
	}
	v.last[at.partition] = at.offset
	if at.partition < 0 || at.partition >= Partitions || at.offset < 0 || at.offset >= int64(len(v.expected[at.partition])) {
		v.proof.Changed++
		return
	}
	want := v.expected[at.partition][at.offset]
	if !bytes.Equal(rec.Value, want.Value()) || !bytes.Equal(rec.Key, want.Key()) || !rec.Time.Equal(want.Ended) {
		v.proof.Changed++
	}
}

// counter counts the lines of committed files, reading each file once: such a file never changes.
type counter struct {
	dir   string
	files map[string]int
}

func (c *counter) count() (int, error) {
	names, err := committed(c.dir)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range names {
		n, known := c.files[name]
		if !known {
			data, err := fs.ReadFile(os.DirFS(c.dir), name)
			if err != nil {
				return 0, err
			}
			n = bytes.Count(data, []byte("\n"))
			c.files[name] = n
		}
		total += n
	}
	return total, nil
}
