package fake

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// topic of every record.
const topic = "fake"

// epochStart is the event time of record 0, in milliseconds; each record is a millisecond later than the one before.
var epochStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// letters has a prime length, so neighbouring records rarely begin their filling at the same letter.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678"

// filling is what values are made of; nobody writes to its second form, as to no slice of an emitted record.
var (
	filling       = strings.Repeat(letters, 64)
	sharedFilling = []byte(filling)
)

// payload is what a record holds.
type payload struct{ key, value []byte }

// Record is record i of a split, exactly as a reader emits it.
func (c Config) Record(split int, i int64) sdk.Record {
	c = c.withDefaults()
	var p payload
	if c.Shared {
		p = c.refer(c.keyTable(), split, i)
	} else {
		p, _ = c.generate(nil, split, i)
	}
	rec := sdk.Record{Split: splitID(split)}
	fill(&rec, split, i, p)
	return rec
}

// ParseValue answers which record a value belongs to.
func ParseValue(value []byte) (split int, i int64, err error) {
	text, _, _ := strings.Cut(string(value), " ")
	s, n, ok := strings.Cut(text, "/")
	if ok {
		if split, err = strconv.Atoi(s); err == nil {
			i, err = strconv.ParseInt(n, 10, 64)
		}
	}
	if !ok || err != nil {
		return 0, 0, fmt.Errorf("fake: value %.40q does not begin with split/index and a space", value)
	}
	return split, i, nil
}

// generate appends key and value of a record to arena.
func (c *Config) generate(arena []byte, split int, i int64) (payload, []byte) {
	var p payload
	h := c.hash(split, i)
	if c.KeyCount > 0 {
		from := len(arena)
		arena = appendKey(arena, h%uint64(c.KeyCount))
		p.key = arena[from:len(arena):len(arena)]
	}
	from := len(arena)
	arena = strconv.AppendInt(arena, int64(split), 10)
	arena = append(arena, '/')
	arena = strconv.AppendInt(arena, i, 10)
	arena = append(arena, ' ')
	for at := start(h); len(arena)-from < c.RecordSize; at = 0 {
		arena = append(arena, filling[at:min(len(filling), at+c.RecordSize-(len(arena)-from))]...)
	}
	p.value = arena[from:len(arena):len(arena)]
	return p, arena
}

// refer is generate for shared values: it copies nothing.
func (c *Config) refer(keys [][]byte, split int, i int64) payload {
	h := c.hash(split, i)
	p := payload{value: c.shared(h)}
	if len(keys) > 0 {
		p.key = keys[h%uint64(len(keys))]
	}
	return p
}

func (c *Config) shared(h uint64) []byte {
	at := start(h)
	return sharedFilling[at : at+c.RecordSize : at+c.RecordSize]
}

// keyTable holds the keys of shared records.
func (c *Config) keyTable() [][]byte {
	if !c.Shared {
		return nil
	}
	keys := make([][]byte, c.KeyCount)
	for i := range keys {
		keys[i] = appendKey(nil, uint64(i))
	}
	return keys
}

func appendKey(b []byte, n uint64) []byte { return strconv.AppendUint(append(b, 'k'), n, 10) }

// hash is what a record is made of.
func (c *Config) hash(split int, i int64) uint64 { return mix(c.Seed ^ uint64(split)<<40 ^ uint64(i)) }

// start is where in the filling a record's begins.
func start(h uint64) int { return int(h >> 32 % uint64(len(letters))) }

// room is how much arena a record needs at most.
func (c *Config) room() int { return c.RecordSize + 64 }

// fill overwrites everything of rec but the split id.
func fill(rec *sdk.Record, split int, i int64, p payload) {
	rec.Key, rec.Value, rec.Headers = p.key, p.value, nil
	rec.Time = time.UnixMilli(epochStart + i).UTC()
	rec.Topic, rec.Partition, rec.Epoch, rec.Offset, rec.Sequence = topic, int32(split), -1, i, ""
}

func (p *payload) size() int64 { return int64(len(p.key) + len(p.value)) }

// mix is a finaliser that spreads neighbouring numbers over all bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
