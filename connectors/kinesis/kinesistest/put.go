package kinesistest

import (
	"time"
	"unicode/utf8"
)

const (
	maxKeyRunes     = 256
	messageTooMuch  = "the shard's 1 MiB or 1,000 records a second are used up"
	messageTooLarge = "the server holds %d bytes, as many as its Options.MaxBytes allow: raise it, or let data expire"
)

// entry is a record to write.
type entry struct {
	Data            *[]byte
	PartitionKey    *string
	ExplicitHashKey *string
}

// check says what is wrong with an entry by itself.
func (e *entry) check(st *stream) (hashKey, error) {
	switch {
	case e.Data == nil:
		return hashKey{}, fail(validation, "Data is missing")
	case e.PartitionKey == nil || *e.PartitionKey == "":
		return hashKey{}, fail(validation, "PartitionKey is missing")
	case len(*e.PartitionKey) > maxKeyRunes*utf8.UTFMax || utf8.RuneCountInString(*e.PartitionKey) > maxKeyRunes:
		return hashKey{}, fail(validation, "PartitionKey is longer than %d characters", maxKeyRunes)
	case len(*e.Data)+len(*e.PartitionKey) > st.maxRecord:
		return hashKey{}, fail(validation, "the record has %d bytes with its key, more than the %d of the stream", len(*e.Data)+len(*e.PartitionKey), st.maxRecord)
	case e.ExplicitHashKey != nil:
		return parseHash(*e.ExplicitHashKey)
	}
	return hashOf(*e.PartitionKey), nil
}

// write appends a record to the shard that owns the hash key.
func (s *Server) write(st *stream, k hashKey, e *entry, arrival time.Time, limited bool) (*shard, *record, error) {
	now := s.clock.Now()
	sh := st.owner(k)
	r := &record{arrival: arrival.Truncate(time.Millisecond), key: e.PartitionKey, data: *e.Data}
	n := r.bytes()
	if limited && !s.options.Unlimited && !sh.writes.admit(now, n, writeRecords, writeBytes) {
		return nil, nil, fail(throughputExceeded, "shard %s: "+messageTooMuch, sh.id)
	}
	if s.mu.held += int64(n); s.mu.held > s.options.MaxBytes {
		for _, old := range st.shards {
			s.mu.held -= old.trim(now, st.retention)
		}
	}
	if s.mu.held > s.options.MaxBytes {
		s.mu.held -= int64(n)
		return nil, nil, fail(limitExceeded, messageTooLarge, s.mu.held)
	}
	st.written += indexStep
	r.index = st.written
	r.sequence = sh.sequence(r.index, now)
	sh.records = append(sh.records, r)
	sh.wake()
	return sh, r, nil
}

// writable is the stream to write to: one that is being resharded takes records.
func (s *Server) writable(n streamRef) (*stream, error) {
	st, err := s.stream(n)
	if err != nil {
		return nil, err
	}
	if st.status(s.clock.Now()) == creating {
		return nil, fail(notFound, "stream %s is CREATING", st.name)
	}
	return st, nil
}

type putRecord struct {
	streamRef
	entry
	SequenceNumberForOrdering *string
}

type placed struct {
	SequenceNumber string `json:",omitempty"`
	ShardId        string `json:",omitempty"`
	ErrorCode      code   `json:",omitempty"`
	ErrorMessage   string `json:",omitempty"`
}

func (r *putRecord) serve(s *Server) (any, error) {
	st, err := s.writable(r.streamRef)
	if err != nil {
		return nil, err
	}
	k, err := r.check(st)
	if err != nil {
		return nil, err
	}
	if r.SequenceNumberForOrdering != nil {
		if _, ok := parseSequence(*r.SequenceNumberForOrdering); !ok {
			return nil, fail(invalidArgument, "SequenceNumberForOrdering %q is not a sequence number", clip(*r.SequenceNumberForOrdering))
		}
	}
	sh, written, err := s.write(st, k, &r.entry, s.clock.Now(), true)
	if err != nil {
		return nil, err
	}
	return placed{SequenceNumber: written.sequence, ShardId: sh.id}, nil
}

type putRecords struct {
	streamRef
	Records []entry
}

type putRecordsAnswer struct {
	FailedRecordCount int
	Records           []placed
}

func (r *putRecords) serve(s *Server) (any, error) {
	st, err := s.writable(r.streamRef)
	if err != nil {
		return nil, err
	}
	if len(r.Records) < 1 || len(r.Records) > batchRecords {
		return nil, fail(validation, "%d records: want 1 to %d", len(r.Records), batchRecords)
	}
	keys, total := make([]hashKey, len(r.Records)), 0
	for i := range r.Records {
		e := &r.Records[i]
		if keys[i], err = e.check(st); err != nil {
			return nil, err
		}
		total += len(*e.Data) + len(*e.PartitionKey)
	}
	if total > batchBytes {
		return nil, fail(invalidArgument, "the records have %d bytes with their keys, more than %d", total, batchBytes)
	}
	answer := putRecordsAnswer{Records: make([]placed, len(r.Records))}
	for i := range r.Records {
		sh, written, err := s.write(st, keys[i], &r.Records[i], s.clock.Now(), true)
		if err != nil {
			refused := asAPIError(err)
			answer.FailedRecordCount++
			answer.Records[i] = placed{ErrorCode: refused.Code, ErrorMessage: refused.Message}
			continue
		}
		answer.Records[i] = placed{SequenceNumber: written.sequence, ShardId: sh.id}
	}
	return answer, nil
}
