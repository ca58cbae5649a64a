package kafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// move tells the reader loop, in its place between the records of a partition, that the position jumps: what comes next does not
// follow what came before. It travels as the context of an otherwise empty record, alone in its chunk, so that records
// pay one comparison a turn for it.
type move struct {
	context.Context //nolint:containedctx // the field of the client's record is one; nothing is ever asked of it
	to              Split
}

// moveTo makes the chunk that moves the partition to a split.
func moveTo(p *partition) base.Chunk[*kgo.Record] {
	marker := &kgo.Record{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Context: move{context.Background(), p.Split}}
	return base.Chunk[*kgo.Record]{Split: p.id, Elements: []*kgo.Record{marker}}
}

// movedTo reports that the chunk is a move.
func movedTo(records []*kgo.Record) (Split, bool) {
	if len(records) != 1 {
		return Split{}, false
	}
	m, ok := records[0].Context.(move)
	return m.to, ok
}

// moves counts and logs where positions were moved.
type moves struct {
	log                           *slog.Logger
	positions, records, recreates sdk.Counter
	missing                       sdk.Gauge
}

func newMoves(m sdk.Metrics, log *slog.Logger) moves {
	return moves{
		log:       log,
		positions: m.Counter("lost_positions", "1", "Positions that the log did not hold any more and that on_lost moved."),
		records:   m.Counter("lost_records", "records", "Offsets between a lost position and where the records go on: what was not read and what was read and is gone."),
		recreates: m.Counter("recreated_partitions", "1", "Partitions of topics created anew that on_recreated began to read."),
		missing:   m.Gauge("missing_partitions", "partitions", "Partitions that are waited for because the cluster does not list them."),
	}
}

// lost is told before the move.
func (m *moves) lost(p *partition, to int64, why error) {
	low, high := min(p.Offset, to), max(p.Offset, to)
	if p.loss != nil {
		low = min(low, p.loss.ResetTo)
	}
	m.positions.Add(1)
	m.records.Add(high - low)
	m.log.Warn("records are lost, reading goes on elsewhere (on_lost)", "topic", p.Topic, "partition", p.Partition,
		"from", p.Offset, "to", to, "first_lost", low, "last_lost", high-1, "reason", why)
}

func (m *moves) recreated(p *partition, to int64) {
	m.recreates.Add(1)
	m.log.Warn("topic was created anew, reading begins there (on_recreated)", "topic", p.Topic, "partition", p.Partition,
		"old_id", topicIDText(p.TopicID), "old_offset", p.Offset, "new_id", topicIDText(p.newID), "offset", to)
}
