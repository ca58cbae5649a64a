package protocol

import (
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
	"github.com/penstock-dev/penstock/sdk"
)

// ManifestVersion is the version of [Manifest] that this build writes. Every published version stays readable.
const ManifestVersion = 1

// Encode returns the manifest as a frame. It fails for a manifest that a decoder would refuse; the error names the field.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("encode %v: %w", manifestFrame, err)
	}
	w := &wire.Manifest{
		Job: []byte(m.Job), Id: uint64(m.ID), Kind: uint32(m.Kind), TriggeredUnixNanos: nanos(m.Triggered), CompletedUnixNanos: nanos(m.Completed),
		Parallelism: uint32(m.Parallelism), Exchange: []byte(m.Exchange), Lane: uint32(m.Lane), Connector: []byte(m.Connector),
		ConnectorVersion: []byte(m.ConnectorVersion), CapabilityDigest: []byte(m.CapabilityDigest), Sink: []byte(m.Sink),
		LastAttempt: uint64(m.LastAttempt), Coordinator: m.Coordinator.toWire(), Records: uint64(m.Records),
	}
	for i := range m.Readers {
		r, err := m.Readers[i].toWire()
		if err != nil {
			return nil, fmt.Errorf("encode %v: reader %d: %w", manifestFrame, m.Readers[i].Reader, err)
		}
		w.Readers = append(w.Readers, r)
	}
	for i := range m.Sinks {
		w.Sinks = append(w.Sinks, m.Sinks[i].toWire())
	}
	return seal(manifestFrame, ManifestVersion, w)
}

// DecodeManifest decodes what [Manifest.Encode] wrote. Times come back in UTC.
func DecodeManifest(b []byte) (*Manifest, error) {
	body, err := open(manifestFrame, ManifestVersion, b)
	if err != nil {
		return nil, err
	}
	var w wire.Manifest
	if err := unmarshal(body, &w, maxManifestElements); err != nil {
		return nil, corrupt(manifestFrame, "%v", err)
	}
	m := &Manifest{
		Job: string(w.GetJob()), ID: checkpointID(w.GetId()), Kind: narrow[CheckpointKind](w.GetKind()),
		Triggered: instant(w.GetTriggeredUnixNanos()), Completed: instant(w.GetCompletedUnixNanos()), Parallelism: int(w.GetParallelism()),
		Exchange: string(w.GetExchange()), Lane: narrow[Lane](w.GetLane()), Connector: string(w.GetConnector()),
		ConnectorVersion: string(w.GetConnectorVersion()), CapabilityDigest: string(w.GetCapabilityDigest()), Sink: string(w.GetSink()),
		LastAttempt: Attempt(w.GetLastAttempt()), Coordinator: coordinatorFromWire(w.GetCoordinator()),
		Records: int64(min(w.GetRecords(), 1<<63)), // what is too large becomes negative, which check refuses
	}
	for _, r := range w.GetReaders() {
		state, err := readerFromWire(r)
		if err != nil {
			return nil, fmt.Errorf("%v: reader %d: %w", manifestFrame, r.GetReader(), err)
		}
		m.Readers = append(m.Readers, state)
	}
	for _, s := range w.GetSinks() {
		m.Sinks = append(m.Sinks, sinkFromWire(s))
	}
	if err := m.check(); err != nil {
		return nil, corrupt(manifestFrame, "%v", err)
	}
	return m, nil
}

func (c *CoordinatorState) toWire() *wire.Coordinator {
	w := &wire.Coordinator{Epoch: uint64(c.Epoch), Enumerator: versionedToWire(c.Enumerator), Generation: c.Generation}
	for i := range c.Tracker {
		a := &c.Tracker[i]
		w.Tracker = append(w.Tracker, &wire.Assignment{
			Reader: uint32(a.Reader), Target: uint64(a.Target), Epoch: uint64(a.Epoch), Sequence: uint64(a.Sequence), Splits: splitsToWire(a.Splits),
		})
	}
	return w
}

func coordinatorFromWire(w *wire.Coordinator) CoordinatorState {
	c := CoordinatorState{Epoch: Epoch(w.GetEpoch()), Enumerator: versionedFromWire(w.GetEnumerator()), Generation: w.GetGeneration()}
	for _, a := range w.GetTracker() {
		c.Tracker = append(c.Tracker, Assignment{
			Reader: sdk.ReaderID(a.GetReader()), Target: Attempt(a.GetTarget()), Epoch: Epoch(a.GetEpoch()), Sequence: Sequence(a.GetSequence()),
			Splits: splitsFromWire(a.GetSplits()),
		})
	}
	return c
}

func (r *ReaderState) toWire() (*wire.Reader, error) {
	metadata, err := r.Metadata.Encode()
	if err != nil {
		return nil, err
	}
	return &wire.Reader{
		Reader: uint32(r.Reader), Splits: splitsToWire(r.Splits), Finished: splitsToWire(r.Finished), Ended: r.Ended, Metadata: metadata,
	}, nil
}

func readerFromWire(w *wire.Reader) (ReaderState, error) {
	metadata, err := DecodeMetadata(w.GetMetadata())
	if err != nil {
		return ReaderState{}, err
	}
	return ReaderState{
		Reader: sdk.ReaderID(w.GetReader()), Splits: splitsFromWire(w.GetSplits()), Finished: splitsFromWire(w.GetFinished()),
		Ended: w.GetEnded(), Metadata: *metadata,
	}, nil
}

func (s *SinkState) toWire() *wire.Sink {
	w := &wire.Sink{Task: uint32(s.Task)}
	for i := range s.Prepared {
		w.Prepared = append(w.Prepared, &wire.Prepared{Checkpoint: uint64(s.Prepared[i].Checkpoint), Data: s.Prepared[i].Data})
	}
	return w
}

func sinkFromWire(w *wire.Sink) SinkState {
	s := SinkState{Task: int(w.GetTask())}
	for _, p := range w.GetPrepared() {
		s.Prepared = append(s.Prepared, Prepared{Checkpoint: checkpointID(p.GetCheckpoint()), Data: filled(p.GetData())})
	}
	return s
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
