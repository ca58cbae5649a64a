package kinesistest

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Record is one to write, or that was written.
type Record struct {
	Data []byte
	// PartitionKey may be empty with [Server.Put]: clients get such a record without a key, as from a stream that distributes records by itself.
	PartitionKey string
	// ExplicitHashKey, in decimal, replaces the MD5 of the key.
	ExplicitHashKey string
	// Arrival is the time that clients are told; zero is now. The service does not promise that it grows along a shard.
	Arrival time.Time
	// Shard and SequenceNumber are set by the server.
	Shard          string
	SequenceNumber string
}

// Shard is what there is to know of one.
type Shard struct {
	ID       string
	Parents  []string // none, one of a split, or two of a merge
	Children []string
	// FirstHash and LastHash are the ends of its hash range, in decimal, both included.
	FirstHash, LastHash string
	// Starting and Ending are sequence numbers; Ending is empty while the shard is open.
	Starting, Ending string
}

// Open reports that the shard takes records.
func (sh Shard) Open() bool { return sh.Ending == "" }

// do serves a request of the process itself, without faults and uncounted.
func (s *Server) do(req request) error {
	_, err := s.serve(req, &Effect{})
	if err != nil {
		return fmt.Errorf("kinesistest: %w", err)
	}
	return nil
}

// CreateStream makes a provisioned stream.
func (s *Server) CreateStream(name string, shards int) error {
	return s.do(&createStream{StreamName: name, ShardCount: &shards})
}

// DeleteStream deletes a stream with its consumers. One of the same name can be made at once.
func (s *Server) DeleteStream(name string) error {
	return s.do(&deleteStream{streamRef: streamRef{StreamName: name}, EnforceConsumerDeletion: true})
}

// SetRetention sets how long data is kept: what is older than that is gone, closed shards too. Unlike the service's it takes any positive time.
func (s *Server) SetRetention(stream string, keep time.Duration) error {
	if keep <= 0 {
		return fmt.Errorf("kinesistest: retention %s: want a positive time", keep)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.stream(streamRef{StreamName: stream})
	if err != nil {
		return fmt.Errorf("kinesistest: %w", err)
	}
	st.retention = keep
	return nil
}

// Put writes records in order, without regard to limits, and returns where they went. It stops at the first that it cannot write.
func (s *Server) Put(stream string, records ...Record) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.stream(streamRef{StreamName: stream})
	if err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	placed := make([]Record, 0, len(records))
	for i := range records {
		r, err := s.put(st, records[i])
		if err != nil {
			return placed, fmt.Errorf("kinesistest: record %d: %w", i, err)
		}
		placed = append(placed, r)
	}
	return placed, nil
}

func (s *Server) put(st *stream, r Record) (Record, error) {
	data := slices.Clone(r.Data)
	e := entry{Data: &data}
	k := hashOf(r.PartitionKey)
	if r.PartitionKey != "" {
		e.PartitionKey = &r.PartitionKey
	}
	if r.ExplicitHashKey != "" {
		var err error
		if k, err = parseHash(r.ExplicitHashKey); err != nil {
			return r, err
		}
	}
	if n := len(r.Data) + len(r.PartitionKey); n > pageBytes {
		return r, errors.New("it is larger than 10 MiB")
	}
	if r.Arrival.IsZero() {
		r.Arrival = s.clock.Now()
	}
	sh, written, err := s.write(st, k, &e, r.Arrival, false)
	if err != nil {
		return r, err
	}
	r.Data, r.Arrival, r.Shard, r.SequenceNumber = written.data, written.arrival, sh.id, written.sequence
	return r, nil
}

// Split divides an open shard into halves and returns the ids of the children, the one of the lower half first.
func (s *Server) Split(stream, shard string) (lower, upper string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, found, err := s.writers(streamRef{StreamName: stream}, shard)
	if err != nil {
		return "", "", fmt.Errorf("kinesistest: %w", err)
	}
	at, ok := found[0].keys.middle()
	if !ok {
		return "", "", fmt.Errorf("kinesistest: shard %s holds a single hash key", shard)
	}
	a, b := st.split(s.clock.Now(), found[0], at)
	return a.id, b.id, nil
}

// Merge joins two adjacent open shards and returns the id of the child.
func (s *Server) Merge(stream, shard, adjacent string) (child string, err error) {
	if err := s.do(&mergeShards{streamRef{StreamName: stream}, shard, adjacent}); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.stream(streamRef{StreamName: stream})
	if err != nil {
		return "", fmt.Errorf("kinesistest: %w", err)
	}
	return st.byID[shard].children[0].id, nil
}

// Reshard splits and merges until the stream has as many open shards, all of the same size. Unlike the service's it goes to any number at once.
func (s *Server) Reshard(stream string, shards int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.settled(streamRef{StreamName: stream})
	if err != nil {
		return fmt.Errorf("kinesistest: %w", err)
	}
	if shards < 1 || shards > maxStreamShards {
		return fmt.Errorf("kinesistest: %d shards: want 1 to %d", shards, maxStreamShards)
	}
	st.scale(s.clock.Now(), shards)
	return nil
}

// Shards are those of a stream whose data has not expired, in the order of their ids.
func (s *Server) Shards(stream string) ([]Shard, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.stream(streamRef{StreamName: stream})
	if err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	var all []Shard
	for _, sh := range st.listed(s.clock.Now()) {
		v := Shard{ID: sh.id, FirstHash: sh.keys.start.String(), LastHash: sh.keys.end.String(), Starting: sh.sequence(0, sh.created), Ending: sh.ending}
		for _, p := range sh.parents {
			v.Parents = append(v.Parents, p.id)
		}
		for _, c := range sh.children {
			v.Children = append(v.Children, c.id)
		}
		all = append(all, v)
	}
	return all, nil
}

// Records are those that a stream holds, shard by shard, in order within each: what a reader must deliver.
func (s *Server) Records(stream string) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.stream(streamRef{StreamName: stream})
	if err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	now := s.clock.Now()
	var all []Record
	for _, sh := range st.listed(now) {
		s.mu.held -= sh.trim(now, st.retention)
		for _, r := range sh.records {
			v := Record{Data: r.data, Arrival: r.arrival, Shard: sh.id, SequenceNumber: r.sequence}
			if r.key != nil {
				v.PartitionKey = *r.key
			}
			all = append(all, v)
		}
	}
	return all, nil
}

// RegisterConsumer registers a consumer of enhanced fan-out and returns its ARN.
func (s *Server) RegisterConsumer(stream, name string) (arn string, err error) {
	answer, err := s.serve(&registerStreamConsumer{StreamARN: streamARN + stream, ConsumerName: name}, &Effect{})
	if err != nil {
		return "", fmt.Errorf("kinesistest: %w", err)
	}
	registered, ok := answer.(registerStreamConsumerAnswer)
	if !ok {
		return "", fmt.Errorf("kinesistest: the answer to a registration is %T", answer)
	}
	return registered.Consumer.ConsumerARN, nil
}
