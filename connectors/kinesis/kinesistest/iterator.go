package kinesistest

import "time"

// iterator is what a shard iterator says, and a position to read a shard from.
type iterator struct {
	Stream     string
	Created    int64 // of the stream, in milliseconds: not another one of the same name
	Shard      string
	Index      uint64 // the first that is not read
	Issued     int64  // in nanoseconds
	Generation uint64 // see ExpireIterators
}

const iteratorPurpose = "iterator"

func (s *Server) sealIterator(st *stream, sh *shard, index uint64) string {
	return s.sealer.seal(iteratorPurpose, iterator{
		Stream: st.name, Created: st.created.UnixMilli(), Shard: sh.id, Index: index, Issued: s.clock.Now().UnixNano(), Generation: s.mu.generation,
	})
}

// openIterator reads an iterator and checks that it holds.
func (s *Server) openIterator(text string) (iterator, error) {
	var it iterator
	if !s.sealer.open(iteratorPurpose, text, &it) {
		return it, fail(invalidArgument, "ShardIterator %q is none of this server", clip(text))
	}
	if age := s.clock.Now().Sub(time.Unix(0, it.Issued)); age >= iteratorLife || it.Generation != s.mu.generation {
		return it, fail(expiredIterator, "the iterator of shard %s was issued %s ago, and they last %s", it.Shard, age.Round(time.Millisecond), iteratorLife)
	}
	return it, nil
}

// start is where a request wants to read from.
type start struct {
	kind      string
	sequence  *string
	timestamp *moment
}

// index makes the start concrete: the index of the first record that it means, or the one that such a record will have.
func (p start) index(st *stream, sh *shard, now time.Time) (uint64, error) {
	switch p.kind {
	case "TRIM_HORIZON":
		return 0, nil
	case "LATEST":
		return st.written + 1, nil
	case "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER":
		index, err := p.sequenceIndex(sh)
		if err == nil && p.kind == "AFTER_SEQUENCE_NUMBER" {
			index++
		}
		return index, err
	case "AT_TIMESTAMP":
		switch {
		case p.timestamp == nil:
			return 0, fail(invalidArgument, "AT_TIMESTAMP needs a Timestamp")
		case p.timestamp.After(now):
			return 0, fail(invalidArgument, "Timestamp %s lies in the future: it is %s", p.timestamp.Format(time.RFC3339Nano), now.UTC().Format(time.RFC3339Nano))
		}
		for _, r := range sh.records {
			if !r.arrival.Before(p.timestamp.Time) {
				return r.index, nil
			}
		}
		return st.written + 1, nil
	}
	return 0, fail(validation, "%q: want TRIM_HORIZON, LATEST, AT_SEQUENCE_NUMBER, AFTER_SEQUENCE_NUMBER or AT_TIMESTAMP", clip(p.kind))
}

func (p start) sequenceIndex(sh *shard) (uint64, error) {
	if p.sequence == nil {
		return 0, fail(invalidArgument, "%s needs a sequence number", p.kind)
	}
	q, ok := parseSequence(*p.sequence)
	switch {
	case !ok:
		return 0, fail(invalidArgument, "%q is not a sequence number of this server", clip(*p.sequence))
	case q.shard != sh.number || q.created != sh.seconds:
		return 0, fail(invalidArgument, "sequence number %s belongs to %s of %s and was used with %s of %s", *p.sequence,
			shardID(q.shard), time.Unix(q.created, 0).UTC().Format(time.RFC3339), sh.id, time.Unix(sh.seconds, 0).UTC().Format(time.RFC3339))
	}
	return q.index, nil
}

type getShardIterator struct {
	streamRef
	ShardId                string
	ShardIteratorType      string
	StartingSequenceNumber *string
	Timestamp              *moment
}

func (r *getShardIterator) target(*Server) Target { return Target{Stream: r.name(), Shard: r.ShardId} }

type getShardIteratorAnswer struct{ ShardIterator string }

func (r *getShardIterator) serve(s *Server) (any, error) {
	st, sh, err := s.shard(r.streamRef, r.ShardId)
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	if !s.options.Unlimited && !sh.iterators.admit(now, 0, iteratorCalls, 0) {
		return nil, fail(throughputExceeded, "shard %s: more than %d GetShardIterator calls within a second", sh.id, iteratorCalls)
	}
	index, err := start{r.ShardIteratorType, r.StartingSequenceNumber, r.Timestamp}.index(st, sh, now)
	if err != nil {
		return nil, err
	}
	return getShardIteratorAnswer{s.sealIterator(st, sh, index)}, nil
}

// shard finds one that a request names, without what has expired.
func (s *Server) shard(n streamRef, id string) (*stream, *shard, error) {
	st, err := s.stream(n)
	if err != nil {
		return nil, nil, err
	}
	now := s.clock.Now()
	sh, err := st.shard(id, now)
	if err != nil {
		return nil, nil, err
	}
	s.mu.held -= sh.trim(now, st.retention)
	return st, sh, nil
}
