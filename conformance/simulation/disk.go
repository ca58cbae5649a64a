package simulation

import (
	"context"
	"syscall"
	"time"

	"github.com/penstock-dev/penstock/runtime/checkpoint"
	"github.com/penstock-dev/penstock/runtime/checkpoint/checkpointtest"
)

// slowDir is the disk as one life sees it: operations take time. Their faults are the disk's own, see inject.
type slowDir struct {
	checkpoint.Dir
	of *life
}

func (d slowDir) pause() { d.of.diskPause() }

func (d slowDir) Create(name string) (checkpoint.File, error) {
	d.pause()
	f, err := d.Dir.Create(name)
	if err != nil {
		return nil, err
	}
	return slowFile{f, d}, nil
}

func (d slowDir) ReadFile(name string, limit int64) ([]byte, error) {
	d.pause()
	return d.Dir.ReadFile(name, limit)
}

func (d slowDir) Rename(from, to string) error {
	d.pause()
	return d.Dir.Rename(from, to)
}

func (d slowDir) Sync() error {
	d.pause()
	return d.Dir.Sync()
}

type slowFile struct {
	checkpoint.File
	dir slowDir
}

func (f slowFile) Sync() error {
	f.dir.pause()
	return f.File.Sync()
}

// diskPause lets an operation take its time, up to the plan's longest.
func (l *life) diskPause() {
	if l.plan.DiskDelay <= 0 {
		return
	}
	n := l.diskOps.Add(1)
	d := time.Duration(mix(l.chaos.seed^n<<8) % uint64(l.plan.DiskDelay+1))
	_ = l.chaos.wait(context.Background(), d)
}

// inject decides about each operation of a disk. It runs under the disk's lock and so only says that the process dies.
func (l *life) inject(op checkpointtest.Op) error {
	v := l.chaos.decide(DiskOp, 0)
	switch {
	case l.diskDead.Load():
		return checkpointtest.ErrStopped
	case v.dies:
		l.diskDead.Store(true)
		go l.die("in the disk operation " + op.String())
		return checkpointtest.ErrStopped
	case v.what == fine || op.Kind == "lock":
		return nil
	case v.what == fails:
		l.chaos.note("disk: %s has no space left", op)
		return syscall.ENOSPC
	default:
		l.chaos.note("disk: %s fails", op)
		return syscall.EIO
	}
}

func fateOf(e End, seed uint64) func(*checkpointtest.Disk) *checkpointtest.Disk {
	switch e.Fate {
	case FateKill:
		return (*checkpointtest.Disk).Kill
	case FateLose:
		return func(d *checkpointtest.Disk) *checkpointtest.Disk { return d.Crash(checkpointtest.Lose) }
	case FateKeep:
		return func(d *checkpointtest.Disk) *checkpointtest.Disk { return d.Crash(checkpointtest.Keep) }
	case FateRandom:
		return func(d *checkpointtest.Disk) *checkpointtest.Disk { return d.Crash(checkpointtest.Random(seed)) }
	default:
		return (*checkpointtest.Disk).Kill
	}
}
