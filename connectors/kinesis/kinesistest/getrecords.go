package kinesistest

type getRecords struct {
	StreamARN     string
	ShardIterator string
	Limit         *int
}

func (r *getRecords) target(s *Server) Target {
	var it iterator
	s.sealer.open(iteratorPurpose, r.ShardIterator, &it)
	return Target{Stream: it.Stream, Shard: it.Shard}
}

type getRecordsAnswer struct {
	Records            []wireRecord
	NextShardIterator  *string     `json:",omitempty"`
	MillisBehindLatest int64       // 0 at the tip
	ChildShards        []wireChild `json:",omitempty"`

	// what WithholdEnd goes on with
	stream *stream
	shard  *shard
	next   uint64
}

func (r *getRecords) serve(s *Server) (any, error) {
	limit := pageRecords
	if r.Limit != nil {
		limit = *r.Limit
	}
	if limit < 1 {
		return nil, fail(validation, "Limit %d: want 1 to %d", limit, pageRecords)
	}
	if limit > pageRecords {
		return nil, fail(invalidArgument, "Limit %d: want 1 to %d", limit, pageRecords)
	}
	it, err := s.openIterator(r.ShardIterator)
	if err != nil {
		return nil, err
	}
	st, sh, err := s.shard(streamRef{StreamName: it.Stream, StreamARN: r.StreamARN}, it.Shard)
	if err != nil {
		return nil, err
	}
	if st.created.UnixMilli() != it.Created {
		return nil, fail(notFound, "stream %s was deleted and made anew since the iterator was issued", st.name)
	}
	now := s.clock.Now()
	if !s.options.Unlimited && !sh.reads.admit(now) {
		return nil, fail(throughputExceeded, "shard %s: its %d calls or %d bytes a second are used up", sh.id, readCalls, readBytes)
	}
	p := sh.read(now, it.Index, limit, pageBytes)
	if !s.options.Unlimited {
		sh.reads.note(now, p.bytes)
	}
	answer := &getRecordsAnswer{Records: make([]wireRecord, len(p.records)), MillisBehindLatest: p.behind.Milliseconds(), stream: st, shard: sh, next: p.next}
	for i, read := range p.records {
		answer.Records[i] = read.wire()
	}
	if p.ended {
		answer.ChildShards = sh.wireChildren()
	} else {
		next := s.sealIterator(st, sh, p.next)
		answer.NextShardIterator = &next
	}
	return answer, nil
}
