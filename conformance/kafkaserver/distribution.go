package kafkaserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/conformance/process"
	"github.com/penstock-dev/penstock/testdata/servers"
)

// layout changes with what this package itself puts beside the downloaded files.
const layout = "2"

// resolveWithin bounds the download, which happens once per machine and pinned version.
const resolveWithin = 5 * time.Minute

// distribution is a broker on disk, ready to be started. It is shared by processes and never changes once complete.
type distribution struct {
	java  string
	dir   string
	flags []string // of the JVM, beside the usual ones
}

// findDistribution returns the broker from the cache of this user, and downloads it first when it is not there. Processes
// that ask at the same time wait for the first one.
func findDistribution(ctx context.Context) (*distribution, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, &UnavailableError{Reason: "java is not on the PATH: install a JDK 17 or later"}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // a user without a home
	}
	pinned := sha256.New()
	pinned.Write([]byte(layout))
	pinned.Write(servers.KafkaPOM)
	pinned.Write([]byte(servers.KafkaSums))
	d := &distribution{java: java, dir: filepath.Join(cache, "penstock", "servers", "kafka-"+hex.EncodeToString(pinned.Sum(nil))[:16])}
	if d.complete() {
		return d.withArchive(), nil
	}
	if err := os.MkdirAll(filepath.Dir(d.dir), 0o755); err != nil {
		return nil, fmt.Errorf("kafkaserver: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	unlock, err := process.Lock(ctx, d.dir+".lock")
	if err != nil {
		return nil, fmt.Errorf("kafkaserver: wait for another process that downloads the broker: %w", err)
	}
	defer unlock()
	if d.complete() {
		return d.withArchive(), nil
	}
	if err := d.resolve(ctx); err != nil {
		return nil, err
	}
	return d.withArchive(), nil
}

// completeFile is written last, when everything else is there and checked.
const completeFile = "complete"

func (d *distribution) complete() bool {
	_, err := os.Stat(filepath.Join(d.dir, completeFile))
	return err == nil
}

// resolve downloads the files, checks each, and makes what else is needed. Whatever an interrupted attempt left is removed first.
func (d *distribution) resolve(ctx context.Context) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return &UnavailableError{Reason: "mvn is not on the PATH and the broker is not in the cache: install Maven"}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	pom, lib := filepath.Join(d.dir, "pom.xml"), filepath.Join(d.dir, "lib")
	if err := os.WriteFile(pom, servers.KafkaPOM, 0o644); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+lib)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kafkaserver: mvn cannot download the broker (%s=off leaves the tests out): %w\n%s", Switch, err, bytes.TrimSpace(out))
	}
	if err := checkSums(lib, servers.KafkaSums); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if err := d.archive(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.dir, completeFile), nil, 0o644); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	return nil
}

// checkSums compares a folder with the sums of what must be in it, and nothing else may.
func checkSums(dir, sums string) error {
	want := make(map[string]string)
	for line := range strings.Lines(sums) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			want[name] = sum
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		got, err := sumOf(filepath.Join(dir, entry.Name()))
		switch {
		case err != nil:
			problems = append(problems, err)
		case want[entry.Name()] == "":
			problems = append(problems, fmt.Errorf("kafkaserver: %s was downloaded and is not pinned in testdata/servers/kafka/jars.sha256", entry.Name()))
		case got != want[entry.Name()]:
			problems = append(problems, fmt.Errorf("kafkaserver: %s has the SHA-256 sum %s, pinned is %s", entry.Name(), got, want[entry.Name()]))
		}
		delete(want, entry.Name())
	}
	for name := range want {
		problems = append(problems, fmt.Errorf("kafkaserver: %s is pinned and was not downloaded", name))
	}
	return errors.Join(problems...)
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("kafkaserver: %w", err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("kafkaserver: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
