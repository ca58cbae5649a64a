package kinesistest

import "time"

// The service's limits, per shard unless said otherwise.
const (
	readCalls       = 5       // GetRecords calls a second
	readBytes       = 2 << 20 // a second
	pageBytes       = 10 << 20
	pageRecords     = 10_000
	writeBytes      = 1 << 20 // a second
	writeRecords    = 1000    // a second
	batchRecords    = 500     // of one PutRecords call
	batchBytes      = 10 << 20
	iteratorCalls   = 5    // GetShardIterator calls a second
	listCalls       = 1000 // ListShards calls a second and stream
	describeCalls   = 20   // DescribeStreamSummary calls a second and stream
	consumerCalls   = 5    // calls a second and stream that register or deregister
	iteratorLife    = 5 * time.Minute
	tokenLife       = 300 * time.Second
	recordBytes     = 1 << 20 // of one record, unless the stream says otherwise
	maxStreamShards = 10_000
)

// rate counts what happens in a second that begins with the first of it.
type rate struct {
	since time.Time
	count int
	bytes int
}

// admit counts one call of n bytes unless the second is full.
func (r *rate) admit(now time.Time, n, maxCount, maxBytes int) bool {
	if now.Sub(r.since) >= time.Second {
		*r = rate{since: now}
	}
	if r.count >= maxCount || (r.bytes > 0 && r.bytes+n > maxBytes) {
		return false
	}
	r.count++
	r.bytes += n
	return true
}

// readMeter holds reads of one shard to what the service allows: never more than five calls within any second, and no call while the bytes of earlier ones
// are more than the time since then pays for. So a page of 10 MiB blocks the shard for five seconds, and one of 2 MiB for one.
type readMeter struct{ calls []readCall }

type readCall struct {
	at    time.Time
	bytes int
}

func (m *readMeter) admit(now time.Time) bool {
	const memory = pageBytes/readBytes*time.Second + 1
	kept := m.calls[:0]
	calls, bytes := 0, 0
	blocked := false
	for _, c := range m.calls {
		age := now.Sub(c.at)
		if age >= memory {
			continue
		}
		kept = append(kept, c)
		if age < time.Second {
			calls++
			bytes += c.bytes
		}
		if c.bytes >= readBytes && age < time.Duration(float64(c.bytes)/readBytes*float64(time.Second)) {
			blocked = true
		}
	}
	m.calls = kept
	return !blocked && calls < readCalls && bytes < readBytes
}

// note counts a call that admit let through.
func (m *readMeter) note(now time.Time, bytes int) {
	m.calls = append(m.calls, readCall{now, bytes})
}
