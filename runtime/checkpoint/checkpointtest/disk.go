package checkpointtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
)

var _ checkpoint.Dir = (*Disk)(nil)

// ErrStopped is the error of every operation from the one at which [Disk.StopAt] stops.
var ErrStopped = errors.New("the process has died")

// Op is one operation, as a fault function sees it before it takes place.
type Op struct {
	N    int    // its number, from 1
	Kind string // create, write, sync, close, rename, remove, syncdir, lock, read or list
	Name string // of the file; empty for the directory
}

func (o Op) String() string {
	if o.Name == "" {
		return o.Kind
	}
	return o.Kind + " " + o.Name
}

// Disk is a checkpoint.Dir in memory. Any goroutine may use it.
type Disk struct {
	mu     sync.Mutex
	now    time.Time
	files  map[string]*file // as the running process sees them
	stable map[string]*file // as of the last sync of the directory
	since  []change         // changes of names after that, in order
	holder *checkpoint.Holder
	fault  func(Op) error
	room   int64 // bytes left; negative: no limit
	stopAt int   // 0: never
	ops    int
	log    []string
}

// file is the content of a file, which renames do not touch.
type file struct {
	data   []byte
	stable []byte // as of the last sync
}

// change is a change of names: name becomes file, or disappears when that is nil; from disappears unless empty.
type change struct {
	name, from string
	file       *file
}

func (c change) apply(names map[string]*file) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.file == nil {
		delete(names, c.name)
		return
	}
	names[c.name] = c.file
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), files: map[string]*file{}, stable: map[string]*file{}, room: -1}
}

// Inject lets fault decide the fate of each operation from now on: an error makes it fail without any effect, except that
// a failing write may have written a part, and a failing sync has lost what was not synced. nil ends it.
func (d *Disk) Inject(fault func(Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// Limit lets the disk take n more bytes; what does not fit fails with ENOSPC. A negative n ends it.
func (d *Disk) Limit(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// StopAt lets the process die in the n-th operation from now, before it has any effect: that one and all later ones fail.
func (d *Disk) StopAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopAt = d.ops + n
}

// Ops is the number of operations so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// TakeLog returns the operations since the last call, one line each. Failed ones say so.
func (d *Disk) TakeLog() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	log := d.log
	d.log = nil
	return log
}

// Names lists the files, sorted.
func (d *Disk) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files))
}

// Put places a durable file, as somebody else would.
func (d *Disk) Put(name string, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &file{data: bytes.Clone(data), stable: bytes.Clone(data)}
	d.files[name] = f
	d.stable[name] = f
}

// Get returns a file's content.
func (d *Disk) Get(name string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	if !ok {
		return nil, false
	}
	return bytes.Clone(f.data), true
}

// begin counts and logs an operation and asks for its fate. The caller holds mu.
func (d *Disk) begin(kind, name string) error {
	d.ops++
	op := Op{N: d.ops, Kind: kind, Name: name}
	var err error
	switch {
	case d.stopAt > 0 && d.ops >= d.stopAt:
		err = ErrStopped
	case d.fault != nil:
		err = d.fault(op)
	}
	if err != nil {
		d.log = append(d.log, fmt.Sprintf("%v: %v", op, err))
		return &fs.PathError{Op: kind, Path: name, Err: err}
	}
	d.log = append(d.log, op.String())
	return nil
}

func missing(kind, name string) error {
	return &fs.PathError{Op: kind, Path: name, Err: fs.ErrNotExist}
}

// Path implements checkpoint.Dir.
func (d *Disk) Path() string { return "/disk" }

// Create implements checkpoint.Dir.
func (d *Disk) Create(name string) (checkpoint.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("create", name); err != nil {
		return nil, err
	}
	f := &file{}
	d.change(change{name: name, file: f})
	return &handle{disk: d, name: name, file: f}, nil
}

func (d *Disk) change(c change) {
	c.apply(d.files)
	d.since = append(d.since, c)
}

// ReadFile implements checkpoint.Dir.
func (d *Disk) ReadFile(name string, limit int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("read", name); err != nil {
		return nil, err
	}
	f, ok := d.files[name]
	switch {
	case !ok:
		return nil, missing("read", name)
	case int64(len(f.data)) > limit:
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EFBIG}
	}
	return bytes.Clone(f.data), nil
}

// Rename implements checkpoint.Dir.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("rename", from+" "+to); err != nil {
		return err
	}
	f, ok := d.files[from]
	if !ok {
		return missing("rename", from)
	}
	d.change(change{name: to, from: from, file: f})
	return nil
}

// Remove implements checkpoint.Dir.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("remove", name); err != nil {
		return err
	}
	if _, ok := d.files[name]; !ok {
		return missing("remove", name)
	}
	d.change(change{name: name})
	return nil
}

// List implements checkpoint.Dir.
func (d *Disk) List() ([]checkpoint.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("list", ""); err != nil {
		return nil, err
	}
	var entries []checkpoint.Entry
	for name, f := range d.files {
		entries = append(entries, checkpoint.Entry{Name: name, Size: int64(len(f.data)), Modified: d.now})
	}
	return entries, nil
}

// Sync implements checkpoint.Dir.
func (d *Disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("syncdir", ""); err != nil {
		return err
	}
	d.stable = maps.Clone(d.files)
	d.since = nil
	return nil
}

// Lock implements checkpoint.Dir. A crash releases it.
func (d *Disk) Lock(name string, holder checkpoint.Holder) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("lock", name); err != nil {
		return nil, err
	}
	if d.holder != nil {
		return nil, &checkpoint.LockedError{Dir: d.Path(), Holder: *d.holder}
	}
	d.holder = &holder
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.holder = nil
		return nil
	}, nil
}

// Close implements checkpoint.Dir. The disk stays usable, so that a store can be opened on it again.
func (d *Disk) Close() error { return nil }

// handle is a file open for writing.
type handle struct {
	disk *Disk
	name string
	file *file
}

// Write implements checkpoint.File. What a full disk has no room for is not written; the rest is.
func (h *handle) Write(p []byte) (int, error) {
	d := h.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("write", h.name); err != nil {
		half := len(p) / 2
		h.file.data = append(h.file.data, p[:half]...)
		return half, err
	}
	n := len(p)
	if d.room >= 0 {
		n = min(n, int(d.room))
		d.room -= int64(n)
	}
	h.file.data = append(h.file.data, p[:n]...)
	if n < len(p) {
		return n, &fs.PathError{Op: "write", Path: h.name, Err: syscall.ENOSPC}
	}
	return n, nil
}

// Sync implements checkpoint.File.
func (h *handle) Sync() error {
	d := h.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin("sync", h.name); err != nil {
		h.file.data = bytes.Clone(h.file.stable)
		return err
	}
	h.file.stable = bytes.Clone(h.file.data)
	return nil
}

// Close implements checkpoint.File.
func (h *handle) Close() error {
	d := h.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.begin("close", h.name)
}
