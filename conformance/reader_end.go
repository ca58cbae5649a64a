package conformance

import (
	"errors"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

func endScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"end/once_after_the_last_record":   endOnceAfterTheLastRecord[S, B],
		"end/not_before_no_more_splits":    endNotBeforeNoMoreSplits[S, B],
		"end/without_splits":               endWithoutSplits[S, B],
		"end/never_with_a_pending_error":   endNeverWithAPendingError[S, B],
		"end/finished_splits_are_evidence": finishedSplitsAreEvidence[S, B],
	}
}

// bounded makes a system with that many parts of that many values, a source that ends there, and its splits.
func (x *trial[S, B]) bounded(parts, values int) (sdk.Source[S], []S) {
	if x.h.Bounded == nil {
		x.skip("the source cannot end (Harness.Bounded is not set)")
	}
	x.start(parts)
	for p := range parts {
		x.append(p, values)
	}
	source := x.h.Bounded(x.b)
	return source, x.splits(source, parts)
}

// finish drives to the end of input.
func (l *loop[S, B]) finish() {
	status, err := l.drive(l.x.inTime(), func() bool { return false })
	if err != nil || status != sdk.EndOfInput {
		l.x.stop("%d of %d records came and no end of input: %s, %v", len(l.out.texts), l.x.total(), status, err)
	}
}

func endOnceAfterTheLastRecord[S sdk.Split, B Backend](x *trial[S, B]) {
	source, splits := x.bounded(2, 25)
	for _, records := range []int{1, 64} {
		l := x.reads(source, splits...)
		l.limits.Records = records
		l.noMore()
		l.finish()
		x.everything(l.out.texts)
		for range 10 {
			l.idle(time.Millisecond)
			if status, err := l.poll(); err != nil || status != sdk.EndOfInput {
				x.fail("polled again after the end of input, the reader answered %s, %v", status, err)
				break
			}
		}
		if extra := len(l.out.texts) - x.total(); extra > 0 {
			x.fail("%d records came after the end of input", extra)
		}
	}
	// What is appended later may be read as well, or be behind the end: all of what was there before is read in any case.
	if !x.h.Wall {
		pass(x.h.Delay)
	}
	x.append(0, 7)
	x.append(1, 7)
	l := x.reads(source, splits...)
	l.noMore()
	l.finish()
	want := []span{{}, {}}
	for _, text := range l.out.texts {
		if part, _, ok := parse(text); ok && part < len(want) {
			want[part].to++
		}
	}
	for part := range want {
		want[part].to = max(want[part].to, 25)
	}
	if wrong := compare(l.out.texts, want, true); wrong != "" {
		x.fail("when more had been appended after the source was made: %s", wrong)
	}
}

func endNotBeforeNoMoreSplits[S sdk.Split, B Backend](x *trial[S, B]) {
	source, splits := x.bounded(2, 10)
	l := x.reads(source, splits[0])
	quiet := func(what string) {
		if status, err := l.drive(time.Minute, func() bool { return false }); err == nil && status == sdk.EndOfInput {
			x.stop("the reader answered EndOfInput %s, before it was told NoMoreSplits", what)
		} else if !errors.Is(err, errQuiet) {
			x.stop("Poll: %v", err)
		}
	}
	quiet("when its only split had ended")
	l.add(splits[1])
	quiet("when both splits had ended")
	x.everything(l.out.texts)
	l.noMore()
	l.noMore()
	l.finish()
	x.everything(l.out.texts)
}

func endWithoutSplits[S sdk.Split, B Backend](x *trial[S, B]) {
	source, _ := x.bounded(1, 1)
	l := x.reads(source)
	if status, err := l.drive(time.Second, func() bool { return false }); !errors.Is(err, errQuiet) {
		x.stop("a reader that waits for its first split answered %s, %v", status, err)
	}
	l.noMore()
	if status, err := l.drive(x.inTime(), func() bool { return false }); err != nil || status != sdk.EndOfInput {
		x.fail("a reader without splits that was told NoMoreSplits answered %s, %v", status, err)
	}
}

// endNeverWithAPendingError lets a call fail after each number of records.
func endNeverWithAPendingError[S sdk.Split, B Backend](x *trial[S, B]) {
	const records = 12
	source, splits := x.bounded(1, records)
	failer, ok := any(x.b).(Failer)
	if !ok {
		x.skip("the backend cannot fail calls (conformance.Failer)")
	}
	for after := range records + 1 {
		l := x.newLoop(source)
		l.open()
		if after == 0 {
			failer.Fail(1)
		}
		l.add(splits...)
		l.noMore()
		l.limits.Records = 1
		failing := false
		status, err := l.drive(x.inTime(), func() bool {
			if len(l.out.texts) == after && after > 0 && !failing {
				failing = true
				failer.Fail(1)
			}
			return false
		})
		if err == nil && status == sdk.EndOfInput && len(l.out.texts) != records {
			x.fail("a call failed after %d records, and after %d of %d the reader answered EndOfInput", after, len(l.out.texts), records)
		}
		if wrong := compare(l.out.texts, []span{{0, len(l.out.texts)}}, true); wrong != "" {
			x.fail("a call failed after %d records: %s", after, wrong)
		}
		l.close()
		failer.Fail(0)
	}
}

func finishedSplitsAreEvidence[S sdk.Split, B Backend](x *trial[S, B]) {
	source, splits := x.bounded(3, 8)
	l := x.reads(source, splits...)
	l.noMore()
	l.finish()
	x.everything(l.out.texts)
	if left := l.snapshot(1); len(left) > 0 {
		x.fail("the snapshot after the end holds %v", ids(left))
	}
	if got, want := ids(l.out.finished), ids(splits); len(got) != len(want) {
		x.stop("FinishSplit was called for %v, want once for each of %v", got, want)
	}
	// The evidence carries the position of the end: from there nothing comes.
	again := x.reads(source, l.out.finished...)
	again.noMore()
	if status, err := again.drive(x.inTime(), func() bool { return false }); err != nil || status != sdk.EndOfInput || len(again.out.texts) > 0 {
		x.fail("a reader that is given splits at the position where they ended emits %d records and answers %s, %v", len(again.out.texts), status, err)
	}
}
