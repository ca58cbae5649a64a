package fake

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Source is the fake source; make it with [New]. Its readers share the counts of its faults.
type Source struct {
	// Hooks may be set before the source is used.
	Hooks Hooks

	cfg         Config
	script      *script
	keys        [][]byte // of shared records
	discoveries atomic.Int64
}

// Hooks let a test steer single calls. All may be nil.
type Hooks struct {
	// BeforeFetch is called on the fetcher's goroutine before each fetch of a chunk that begins at record next. It may block
	// until ctx ends. Its error becomes the fetch's.
	BeforeFetch func(ctx context.Context, split int, next int64) error
}

var (
	_ sdk.Source[Split] = (*Source)(nil)
	_ sdk.Positioner    = (*Source)(nil)
	_ sdk.Describer     = Split{}
)

// New makes a source, or says what is wrong with the configuration.
func New(cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Source{cfg: cfg, script: newScript(cfg.Faults.Script), keys: cfg.keyTable()}, nil
}

// Triggered tells of each fault that struck, in order. A reader of it that falls a thousand behind misses some.
func (s *Source) Triggered() <-chan Fault { return s.script.triggered }

// Release frees everything that is stuck, now and later. Any goroutine, any number of times.
func (s *Source) Release() { s.script.release.Do(func() { close(s.script.released) }) }

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability {
	c := base.Capability("fake", "1.0.0")
	c.Suite = 1 // of package conformance, passed
	return c
}

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return splitCodec{} }

// PositionAfter implements [sdk.Positioner].
func (s *Source) PositionAfter(rec *sdk.Record) (sdk.VersionedBytes, error) {
	data, err := splitCodec{}.Encode(Split{Number: int(rec.Partition), Next: rec.Offset + 1, End: s.cfg.RecordsPerSplit})
	return sdk.VersionedBytes{Version: splitVersion, Data: data}, err
}

// NewEnumerator implements [sdk.Source].
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	cfg := base.EnumeratorConfig[Split]{
		Discover: s.discover,
		Durable:  s.cfg.Durable,
		Identity: []sdk.Attribute{
			{Name: "seed", Value: strconv.FormatUint(s.cfg.Seed, 10)},
			{Name: "record_size", Value: strconv.Itoa(s.cfg.RecordSize)},
			{Name: "key_count", Value: strconv.Itoa(s.cfg.KeyCount)},
			{Name: "shared", Value: strconv.FormatBool(s.cfg.Shared)},
		},
	}
	if len(s.cfg.LaterSplits) > 0 {
		cfg.Interval = s.cfg.Interval
	}
	return base.NewEnumerator(ctx, state, cfg)
}

// discover lists what exists. How many later splits there are by now follows from what is known, not from a count of
// calls, so that a restart does not make splits disappear.
func (s *Source) discover(ctx context.Context, round base.Round) ([]Split, error) {
	if err := pause(ctx, s.cfg.Faults.DiscoveryLatency); err != nil {
		return nil, err
	}
	if n := s.discoveries.Add(1); n <= int64(s.cfg.Faults.DiscoveryFailures) {
		return nil, fmt.Errorf("%w: discovery %d of %d that fail", ErrFault, n, s.cfg.Faults.DiscoveryFailures)
	}
	count := s.cfg.Splits
	for _, more := range s.cfg.LaterSplits {
		if round.First || !round.Known(splitID(count-1)) {
			break
		}
		count += more
	}
	splits := make([]Split, count)
	for i := range splits {
		splits[i] = Split{Number: i, End: s.cfg.RecordsPerSplit}
	}
	return splits, nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
