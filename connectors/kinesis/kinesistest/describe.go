package kinesistest

import (
	"maps"
	"slices"
	"time"
)

type monitoring struct{ ShardLevelMetrics []string }

// description is of a stream, in both forms that there are.
type description struct {
	StreamName              string
	StreamARN               string
	StreamStatus            status
	StreamModeDetails       wireMode
	StreamCreationTimestamp *moment
	RetentionPeriodHours    int
	EncryptionType          string
	EnhancedMonitoring      []monitoring
	// of the summary
	OpenShardCount     *int `json:",omitempty"`
	ConsumerCount      *int `json:",omitempty"`
	MaxRecordSizeInKiB *int `json:",omitempty"`
	// of the other one
	Shards        []wireShard `json:",omitempty"`
	HasMoreShards *bool       `json:",omitempty"`
}

func (st *stream) describe(now time.Time) description {
	return description{
		StreamName: st.name, StreamARN: st.arn(), StreamStatus: st.status(now), StreamModeDetails: wireMode{st.mode},
		StreamCreationTimestamp: momentOf(st.created), RetentionPeriodHours: int(st.retention.Hours()), EncryptionType: "NONE",
		EnhancedMonitoring: []monitoring{{ShardLevelMetrics: []string{}}},
	}
}

type describeStreamSummary struct{ streamRef }

type describeStreamSummaryAnswer struct{ StreamDescriptionSummary description }

func (r *describeStreamSummary) serve(s *Server) (any, error) {
	st, err := s.stream(r.streamRef)
	if err != nil {
		return nil, err
	}
	now := s.clock.Now()
	if !s.options.Unlimited && !st.describes.admit(now, 0, describeCalls, 0) {
		return nil, fail(limitExceeded, "stream %s: more than %d DescribeStreamSummary calls within a second", st.name, describeCalls)
	}
	d := st.describe(now)
	open, consumers, kib := len(st.openShards()), len(st.consumers), st.maxRecord>>10
	d.OpenShardCount, d.ConsumerCount, d.MaxRecordSizeInKiB = &open, &consumers, &kib
	return describeStreamSummaryAnswer{d}, nil
}

type describeStream struct {
	streamRef
	ExclusiveStartShardId string
	Limit                 *int
}

type describeStreamAnswer struct{ StreamDescription description }

const describeShards = 100

func (r *describeStream) serve(s *Server) (any, error) {
	st, err := s.stream(r.streamRef)
	if err != nil {
		return nil, err
	}
	limit := describeShards
	if r.Limit != nil {
		if *r.Limit < 1 || *r.Limit > listMost {
			return nil, fail(validation, "Limit %d: want 1 to %d", *r.Limit, listMost)
		}
		limit = min(limit, *r.Limit)
	}
	now := s.clock.Now()
	d := st.describe(now)
	d.Shards, d.HasMoreShards = []wireShard{}, new(bool)
	for _, sh := range st.listed(now) {
		if sh.id <= r.ExclusiveStartShardId {
			continue
		}
		if len(d.Shards) == limit {
			*d.HasMoreShards = true
			break
		}
		d.Shards = append(d.Shards, sh.wire())
	}
	return describeStreamAnswer{d}, nil
}

type listStreams struct {
	ExclusiveStartStreamName string
	Limit                    *int
}

func (*listStreams) target(*Server) Target { return Target{} }

type streamSummary struct {
	StreamName              string
	StreamARN               string
	StreamStatus            status
	StreamModeDetails       wireMode
	StreamCreationTimestamp *moment
}

type listStreamsAnswer struct {
	StreamNames     []string
	StreamSummaries []streamSummary
	HasMoreStreams  bool
}

func (r *listStreams) serve(s *Server) (any, error) {
	limit := describeShards
	if r.Limit != nil {
		if *r.Limit < 1 || *r.Limit > listMost {
			return nil, fail(validation, "Limit %d: want 1 to %d", *r.Limit, listMost)
		}
		limit = *r.Limit
	}
	now := s.clock.Now()
	answer := listStreamsAnswer{StreamNames: []string{}}
	for _, name := range slices.Sorted(maps.Keys(s.mu.streams)) {
		if name <= r.ExclusiveStartStreamName {
			continue
		}
		if len(answer.StreamNames) == limit {
			answer.HasMoreStreams = true
			break
		}
		st := s.mu.streams[name]
		answer.StreamNames = append(answer.StreamNames, name)
		answer.StreamSummaries = append(answer.StreamSummaries, streamSummary{name, st.arn(), st.status(now), wireMode{st.mode}, momentOf(st.created)})
	}
	return answer, nil
}

type updateMaxRecordSize struct {
	streamRef
	MaxRecordSizeInKiB int
}

func (r *updateMaxRecordSize) serve(s *Server) (any, error) {
	st, err := s.settled(r.streamRef)
	if err != nil {
		return nil, err
	}
	if r.MaxRecordSizeInKiB < recordBytes>>10 || r.MaxRecordSizeInKiB > pageBytes>>10 {
		return nil, fail(validation, "MaxRecordSizeInKiB %d: want %d to %d", r.MaxRecordSizeInKiB, recordBytes>>10, pageBytes>>10)
	}
	st.maxRecord = r.MaxRecordSizeInKiB << 10
	return nil, nil
}
