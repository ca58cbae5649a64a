package reader

import (
	"sync/atomic"

	"github.com/penstock-dev/penstock/runtime/telemetry"
	"github.com/penstock-dev/penstock/sdk"
)

// output is the [sdk.Output] of one loop, valid during a turn.
type output struct {
	fenced   *atomic.Bool
	refused  *telemetry.Counter
	turn     *sdk.Turn
	batch    *sdk.Batch
	finished []sdk.Split
}

func (o *output) Emit(rec sdk.Record) bool {
	if o.fenced.Load() {
		o.refused.Inc()
		return false
	}
	o.turn.Consume(1, o.batch.Append(&rec))
	return true
}

func (o *output) EmitView(v sdk.View, from int) (int, bool) {
	if o.fenced.Load() {
		o.refused.Inc()
		return 0, false
	}
	n := min(v.Len()-from, o.turn.Records())
	if n <= 0 || o.turn.Bytes() == 0 {
		return 0, true
	}
	for n > 1 && v.Bytes(from, from+n) > o.turn.Bytes() {
		n /= 2
	}
	o.turn.Consume(n, o.batch.AppendView(v, from, from+n))
	return n, true
}

func (o *output) FinishSplit(final sdk.Split) { o.finished = append(o.finished, final) }
