package base

import "github.com/penstock-dev/penstock/sdk"

// output stands between the author's emit function and the engine during a turn. It fills in the split, counts for the
// rate limit, and latches a refusal: whatever an author does after a false, nothing more reaches the engine.
type output struct {
	to      sdk.Output // valid during a turn only
	split   sdk.SplitID
	emitted int
	refused bool
}

func (o *output) Emit(rec sdk.Record) bool {
	if o.refused {
		return false
	}
	if rec.Split == "" {
		rec.Split = o.split
	}
	if !o.to.Emit(rec) {
		o.refused = true
		return false
	}
	o.emitted++
	return true
}

func (o *output) EmitView(v sdk.View, from int) (accepted int, ok bool) {
	if o.refused {
		return 0, false
	}
	accepted, ok = o.to.EmitView(v, from)
	o.emitted += accepted
	o.refused = !ok
	return accepted, ok
}

func (o *output) FinishSplit(final sdk.Split) {
	if !o.refused {
		o.to.FinishSplit(final)
	}
}
