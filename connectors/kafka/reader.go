package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// reader is the base reader with the lag reported after its turns and, when there is a group, positions committed to it.
type reader struct {
	*base.Reader[*kgo.Record, Split, state]
	lag       *lag
	committer *committer // or nil
}

// state is a split on the reader loop.
type state struct {
	Split
	id sdk.SplitID
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	if err := s.Validate(); err != nil {
		return nil, sdk.Fatal(err)
	}
	source := s.withDefaults()
	lag := newLag(ctx.Metrics())
	config := base.Config[*kgo.Record, Split, state]{
		Fetcher:          func() (base.SplitReader[*kgo.Record, Split], error) { return newFetcher(source, ctx, lag) },
		EmitChunk:        lag.emit,
		ToState:          func(s Split) state { return state{s, s.SplitID()} },
		ToSplit:          func(st *state) Split { return st.Split },
		RecordsPerSecond: source.RecordsPerSecond,
	}
	var c *committer
	if source.CommitGroup != "" {
		config.OnCheckpoint = func(_ sdk.CheckpointID, splits []Split) error {
			c.offer(splits)
			return nil
		}
	}
	r, err := base.NewReader(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if source.CommitGroup != "" {
		c = newCommitter(source, ctx.Metrics(), ctx.Logger())
	}
	return &reader{r, lag, c}, nil
}

// Close implements [sdk.Reader].
func (r *reader) Close() error {
	err := r.Reader.Close()
	if r.committer != nil {
		r.committer.close()
		r.committer = nil
	}
	return err
}

// Poll implements [sdk.Reader].
func (r *reader) Poll(turn *sdk.Turn, out sdk.Output) (sdk.PollStatus, error) {
	status, err := r.Reader.Poll(turn, out)
	r.lag.report(status)
	return status, err
}

// emit hands records over as they are and moves the position past the last accepted one, the only one it looks at.
func (l *lag) emit(records []*kgo.Record, st *state, out sdk.Output) (consumed int, err error) {
	if to, ok := movedTo(records); ok {
		st.Split = to
		l.advance(st.id, to.Offset, time.Time{})
		return 1, nil
	}
	accepted, _ := out.EmitView(&view{st.id, records}, 0) // the base sees a refusal too, and ends the turn
	if accepted == 0 {
		return 0, nil
	}
	last := records[accepted-1]
	st.Offset, st.Epoch = last.Offset+1, last.LeaderEpoch
	l.advance(st.id, st.Offset, last.Timestamp)
	return accepted, nil
}
