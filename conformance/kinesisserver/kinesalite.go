package kinesisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance/process"
)

// kinesaliteFile is the program that starts it, in the folder of the distribution.
const kinesaliteFile = "kinesalite.js"

// Kinesalite is the other emulator: kinesalite 3.3.3, which is fast and has a clock that [Kinesalite.Advance] puts forward. It knows no enhanced
// fan-out and no ARNs, answers ListShards in one page, never names child shards, and ends a closed shard with an empty page of its own. Its
// Date header is the time of the machine.
type Kinesalite struct {
	*Server
	control string
}

// NewKinesalite starts it, as [New] does kinesis-local. The caller closes it.
func NewKinesalite(ctx context.Context) (*Kinesalite, error) {
	k := &Kinesalite{}
	s, err := launch(ctx, k.start)
	if err != nil {
		return nil, err
	}
	k.Server = s
	return k, nil
}

func (k *Kinesalite) start(ctx context.Context, s *Server, dist *distribution) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	if err := s.run(process.Command{Program: dist.node, Args: []string{kinesaliteFile, strconv.Itoa(ports[0]), strconv.Itoa(ports[1])}, Dir: dist.dir}); err != nil {
		return err
	}
	s.endpoint = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	k.control = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[1]))
	if err := s.await(ctx); err != nil {
		return errors.Join(err, s.process.End())
	}
	return nil
}

// Advance puts the clock forward, by whole milliseconds: iterators expire, records and shards are trimmed.
func (k *Kinesalite) Advance(ctx context.Context, d time.Duration) error {
	url := k.control + "/?ms=" + strconv.FormatInt(d.Milliseconds(), 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return fmt.Errorf("kinesisserver: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("kinesisserver: advance the clock: %w", err)
	}
	if err := resp.Body.Close(); err != nil {
		return fmt.Errorf("kinesisserver: advance the clock: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("kinesisserver: the clock cannot be put forward by %s: %s", d, resp.Status)
	}
	return nil
}

// StartKinesalite starts one for a test, which skips where there can be none, as [Shared] does.
func StartKinesalite(t testing.TB) *Kinesalite {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: the test needs a real Kinesis emulator, which -short leaves out")
	}
	if os.Getenv(Switch) == "off" {
		t.Skipf("SKIPPED: the test needs a real Kinesis emulator, and %s=off", Switch)
	}
	k, err := NewKinesalite(t.Context())
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok && os.Getenv(Switch) != "require" {
		t.Skip("SKIPPED: no real Kinesis emulator: " + unavailable.Reason)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the emulator ends with\n%s", k.Log())
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}
