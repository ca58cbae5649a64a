package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

var _ Storage = (*MemoryStore)(nil)

// MemoryStore is the [Storage] of a job without a state directory: failed tasks recover from it, a new process does not. It
// keeps encoded files, so that what a restore gets went through the same code as from a disk.
type MemoryStore struct {
	mu       sync.Mutex
	closed   bool
	files    map[sdk.CheckpointID]memoryFile
	newest   sdk.CheckpointID
	attempts protocol.Attempt // next to give out
	ids      sdk.CheckpointID // next to give out
}

type memoryFile struct {
	data []byte
	info Info
}

// NewMemory returns an empty store.
func NewMemory() *MemoryStore {
	return &MemoryStore{files: map[sdk.CheckpointID]memoryFile{}, attempts: 1, ids: 1}
}

// lock takes the mutex, unless the store is closed or nobody waits for the answer any more.
func (s *MemoryStore) lock(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrStoreClosed
	}
	return nil
}

// Write implements [Storage].
func (s *MemoryStore) Write(ctx context.Context, m *protocol.Manifest) (Info, error) {
	data, err := encodeFile(m)
	if err != nil {
		return Info{}, fmt.Errorf("write checkpoint %d: %w", m.ID, err)
	}
	if err := s.lock(ctx); err != nil {
		return Info{}, fmt.Errorf("write checkpoint %d: %w", m.ID, err)
	}
	defer s.mu.Unlock()
	if m.ID <= s.newest {
		return Info{}, fmt.Errorf("write checkpoint %d: there is checkpoint %d already, and numbers only grow", m.ID, s.newest)
	}
	info := Info{
		ID: m.ID, Savepoint: savepoint(m.Kind), Size: int64(len(data)), Modified: m.Completed,
		State: Usable, Job: m.Job, Kind: m.Kind, Completed: m.Completed,
	}
	s.files[m.ID] = memoryFile{data, info}
	s.newest = m.ID
	s.ids = max(s.ids, m.ID+1)
	return info, nil
}

// Latest implements [Storage].
func (s *MemoryStore) Latest(ctx context.Context) (*protocol.Manifest, Info, error) {
	if err := s.lock(ctx); err != nil {
		return nil, Info{}, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	defer s.mu.Unlock()
	if s.newest == 0 {
		return nil, Info{}, ErrNoCheckpoint
	}
	return s.readLocked(s.newest)
}

// Read implements [Storage].
func (s *MemoryStore) Read(ctx context.Context, id sdk.CheckpointID) (*protocol.Manifest, Info, error) {
	if err := s.lock(ctx); err != nil {
		return nil, Info{}, fmt.Errorf("read checkpoint %d: %w", id, err)
	}
	defer s.mu.Unlock()
	return s.readLocked(id)
}

func (s *MemoryStore) readLocked(id sdk.CheckpointID) (*protocol.Manifest, Info, error) {
	file, ok := s.files[id]
	if !ok {
		return nil, Info{}, fmt.Errorf("%w %d", ErrNoCheckpoint, id)
	}
	m, _, err := decodeFile(file.data)
	if err != nil {
		return nil, Info{}, fmt.Errorf("read checkpoint %d: %w", id, err)
	}
	return m, file.info, nil
}

// Prune implements [Storage]. Savepoints count as checkpoints here: nobody could delete them, and memory is bounded.
func (s *MemoryStore) Prune(ctx context.Context, keep int) error {
	if keep < 1 {
		return fmt.Errorf("prune checkpoints: keep is %d, want at least 1", keep)
	}
	if err := s.lock(ctx); err != nil {
		return fmt.Errorf("prune checkpoints: %w", err)
	}
	defer s.mu.Unlock()
	ids := slices.Sorted(maps.Keys(s.files))
	for _, id := range ids[:max(len(ids)-keep, 0)] {
		delete(s.files, id)
	}
	return nil
}

// ReserveAttempts implements [Storage].
func (s *MemoryStore) ReserveAttempts(ctx context.Context, n int) (protocol.Attempt, error) {
	if n < 1 || n > maxReserve {
		return 0, fmt.Errorf("reserve attempt numbers: %d is out of range, want 1 to %d", n, maxReserve)
	}
	if err := s.lock(ctx); err != nil {
		return 0, fmt.Errorf("reserve attempt numbers: %w", err)
	}
	defer s.mu.Unlock()
	first := s.attempts
	s.attempts += protocol.Attempt(n)
	return first, nil
}

// ReserveCheckpoints implements [Storage].
func (s *MemoryStore) ReserveCheckpoints(ctx context.Context, n int) (sdk.CheckpointID, error) {
	if n < 1 || n > maxReserve {
		return 0, fmt.Errorf("reserve checkpoint numbers: %d is out of range, want 1 to %d", n, maxReserve)
	}
	if err := s.lock(ctx); err != nil {
		return 0, fmt.Errorf("reserve checkpoint numbers: %w", err)
	}
	defer s.mu.Unlock()
	first := s.ids
	s.ids += sdk.CheckpointID(n)
	return first, nil
}

// Raise implements [Storage].
func (s *MemoryStore) Raise(ctx context.Context, id sdk.CheckpointID, attempt protocol.Attempt) error {
	if err := s.lock(ctx); err != nil {
		return fmt.Errorf("raise the numbers: %w", err)
	}
	defer s.mu.Unlock()
	s.ids, s.attempts = max(s.ids, id+1), max(s.attempts, attempt+1)
	return nil
}

// Close implements [Storage]. The checkpoints are gone with it.
func (s *MemoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	clear(s.files)
	return nil
}
