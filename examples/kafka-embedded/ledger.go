package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/penstock-dev/penstock/sdk"
)

// ledgerVersion is the version of the file. Raise it, and read the old one, when its meaning changes.
const ledgerVersion = 1

// takings is what a driver earned.
type takings struct {
	Rides int64 `json:"rides"`
	Cents int64 `json:"cents"`
}

// book is the content of the file: sums, and for each sink task the newest checkpoint whose sums are among them. The two are
// written together or not at all; that is all that exactly once needs of a store.
type book struct {
	Version    int                      `json:"version"`
	Applied    map[int]sdk.CheckpointID `json:"applied"`
	Unreadable int64                    `json:"unreadable"`
	Drivers    map[string]takings       `json:"drivers"`
}

// ledger keeps a book in a file. Its methods may be called from any goroutine: each sink task calls it from its own.
type ledger struct {
	path string

	mu   sync.Mutex
	book book // as it is in the file
}

func openLedger(path string) (*ledger, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	empty := book{Version: ledgerVersion, Applied: map[int]sdk.CheckpointID{}, Drivers: map[string]takings{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &ledger{path: path, book: empty}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	var b book
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("ledger %s: %w", path, err)
	}
	if b.Version != ledgerVersion || b.Applied == nil || b.Drivers == nil {
		return nil, fmt.Errorf("ledger %s: not of version %d, or not whole: bring back the file, or move it and the state away", path, ledgerVersion)
	}
	return &ledger{path: path, book: b}, nil
}

// newest is the newest checkpoint of which anything is in the book.
func (l *ledger) newest() sdk.CheckpointID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var id sdk.CheckpointID
	for _, applied := range l.book.Applied {
		id = max(id, applied)
	}
	return id
}

// add adds the sums of one task and checkpoint, unless they are in the book already. A task's checkpoints come in order, so the newest
// one is all there is to remember.
func (l *ledger) add(s sums) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Checkpoint <= l.book.Applied[s.Task] {
		return nil
	}
	next := l.book
	next.Applied, next.Drivers = maps.Clone(l.book.Applied), maps.Clone(l.book.Drivers)
	next.Applied[s.Task] = s.Checkpoint
	next.Unreadable += s.Unreadable
	for driver, earned := range s.Drivers {
		sum := next.Drivers[driver]
		next.Drivers[driver] = takings{Rides: sum.Rides + earned.Rides, Cents: sum.Cents + earned.Cents}
	}
	// Memory follows the file: when writing fails, the next try starts from the same sums.
	if err := replace(l.path, next); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.book = next
	return nil
}

// replace writes the book beside the file, and then puts it in its place in one step: whoever reads the file, and whatever crashes,
// finds the old book or the new one.
func replace(path string, b book) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	beside := path + ".new"
	file, err := os.Create(beside)
	if err != nil {
		return err
	}
	_, err = file.Write(append(data, '\n'))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	// The rename itself has to survive a power cut too.
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
