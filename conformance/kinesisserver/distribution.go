package kinesisserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/penstock-dev/penstock/conformance/process"
	"github.com/penstock-dev/penstock/testdata/servers"
)

// UnavailableError says why no server can be had here, as opposed to one that fails. Tests skip on it.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return "kinesisserver: no server here: " + e.Reason }

// installWithin bounds the download, which happens once per machine and pinned version.
const installWithin = 3 * time.Minute

// distribution is an installed emulator, ready to be started. It is shared by processes and never changes once complete.
type distribution struct {
	node string
	dir  string
}

// program is the folder of the emulator. It reads a file beside its code from the working directory.
func (d *distribution) program() string {
	return filepath.Join(d.dir, "node_modules", "kinesis-local")
}

// completeFile is written last.
const completeFile = "complete"

func (d *distribution) complete() bool {
	_, err := os.Stat(filepath.Join(d.dir, completeFile))
	return err == nil
}

// findDistribution returns the emulator from the cache of this user, and installs it first when it is not there. Processes that ask at
// the same time wait for the first one.
func findDistribution(ctx context.Context) (*distribution, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, &UnavailableError{Reason: "node is not on the PATH: install Node 18 or later"}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // a user without a home
	}
	pinned := sha256.New()
	pinned.Write(servers.KinesisPackage)
	pinned.Write(servers.KinesisLock)
	pinned.Write(servers.Kinesalite)
	d := &distribution{node: node, dir: filepath.Join(cache, "penstock", "servers", "kinesis-"+hex.EncodeToString(pinned.Sum(nil))[:16])}
	if d.complete() {
		return d, nil
	}
	if err := os.MkdirAll(filepath.Dir(d.dir), 0o755); err != nil {
		return nil, fmt.Errorf("kinesisserver: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, installWithin)
	defer cancel()
	unlock, err := process.Lock(ctx, d.dir+".lock")
	if err != nil {
		return nil, fmt.Errorf("kinesisserver: wait for another process that installs the emulator: %w", err)
	}
	defer unlock()
	if d.complete() {
		return d, nil
	}
	return d, d.install(ctx)
}

// install has npm download what the lock file pins; npm checks the sums. Whatever an interrupted attempt left is removed first.
func (d *distribution) install(ctx context.Context) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return &UnavailableError{Reason: "npm is not on the PATH and the emulator is not in the cache: install npm"}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("kinesisserver: %w", err)
	}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return fmt.Errorf("kinesisserver: %w", err)
	}
	for name, data := range map[string][]byte{"package.json": servers.KinesisPackage, "package-lock.json": servers.KinesisLock, kinesaliteFile: servers.Kinesalite} {
		if err := os.WriteFile(filepath.Join(d.dir, name), data, 0o644); err != nil {
			return fmt.Errorf("kinesisserver: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund")
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kinesisserver: npm cannot install the emulator (%s=off leaves the tests out): %w\n%s", Switch, err, bytes.TrimSpace(out))
	}
	if err := os.WriteFile(filepath.Join(d.dir, completeFile), nil, 0o644); err != nil {
		return fmt.Errorf("kinesisserver: %w", err)
	}
	return nil
}
