package broken

import (
	"context"

	"github.com/penstock-dev/penstock/sdk"
)

// Wakeup implements [sdk.Reader].
func (r *reader) Wakeup() {
	if r.has(DeafToWakeup) {
		return
	}
	r.woken.Store(true)
	r.wake.Lock()
	defer r.wake.Unlock()
	if r.wake.cancel != nil {
		r.wake.cancel()
		r.wake.cancel = nil
	}
}

// untilWoken is a context that ends with the reader's life and with the next Wakeup.
func (r *reader) untilWoken() context.Context {
	r.wake.Lock()
	defer r.wake.Unlock()
	if r.wake.cancel == nil {
		r.wake.ctx, r.wake.cancel = context.WithCancel(r.life)
	}
	return r.wake.ctx
}

// fetch fetches a split to its end. Its goroutine is the split's.
func (r *reader) fetch(o *open, s Split) {
	from := int(o.fetched.Load())
	for from < s.End {
		ctx := r.untilWoken()
		if r.has(DeafWhenStuck) && r.system.hangs() {
			ctx = context.Background()
		}
		values, err := r.read(ctx, o, s.Part, from, min(chunkSize, s.End-from))
		if r.has(LosesWhenWoken) && err == nil {
			from += len(values)
			if wait(ctx, latency) != nil {
				continue
			}
			from -= len(values)
		}
		switch {
		case r.life.Err() != nil:
			return
		case err != nil && ctx.Err() != nil:
			continue
		case err != nil && r.has(SwallowsErrors):
			return
		case err != nil && r.has(EndsInsteadOfError):
			s.End = from
			continue
		}
		if out := r.large.Load(); r.has(EmitsAtLarge) && out != nil && err == nil {
			last := len(values) - 1
			(*out).Emit(sdk.Record{Value: []byte(values[last]), Split: o.id})
		}
		if next := from + len(values); r.has(SkipsPlace) && from < 1000 && next >= 1000 {
			values = values[:len(values)-1]
			from++
		}
		from += len(values)
		o.fetched.Store(int64(from))
		r.note(s.Part, from)
		if !r.push(o, chunk{values: values, end: from >= s.End, err: err}) || err != nil {
			return
		}
		if r.fetched != nil {
			r.fetched.Add(int64(len(values)))
		}
		if from >= s.End {
			return
		}
	}
	r.push(o, chunk{end: true})
}

// push hands a chunk over and says so.
func (r *reader) push(o *open, c chunk) bool {
	select {
	case o.chunks <- c:
		r.ctx.NotifyAvailable()
		return true
	case <-r.life.Done():
		return false
	}
}

// read asks the system, or another reader's memory.
func (r *reader) read(ctx context.Context, o *open, part, from, n int) ([]string, error) {
	if !r.has(SharesSlots) {
		return r.system.read(ctx, part, from, n)
	}
	at := place{o.slot, from}
	values, err := r.system.read(ctx, part, from, n)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers[at] == nil {
		r.answers[at] = values
	}
	return r.answers[at], nil
}

// note is for a source that has a memory besides its splits.
func (r *reader) note(part, next int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[part] = max(r.seen[part], next)
}
