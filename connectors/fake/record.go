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

// epochStart is the event time of record 0; each record is a millisecond later than the one before.
var epochStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// letters has a prime length, so neighbouring records rarely begin their filling at the same letter.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678"

var filling = strings.Repeat(letters, 64)

// element is a record as it is fetched. Keys and values of a chunk share one allocation.
type element struct {
	index      int64
	key, value []byte
}

// Record is record i of a split, exactly as a reader emits it.
func (c Config) Record(split int, i int64) sdk.Record {
	c = c.withDefaults()
	var e element
	_ = c.generate(nil, split, i, &e)
	rec := sdk.Record{Split: splitID(split)}
	e.fill(&rec, split)
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

// generate appends key and value of a record to arena and points e at them.
func (c *Config) generate(arena []byte, split int, i int64, e *element) []byte {
	h := mix(c.Seed ^ mix(uint64(split)<<1|1) ^ mix(uint64(i)))
	e.index = i
	if c.KeyCount > 0 {
		from := len(arena)
		arena = append(arena, 'k')
		arena = strconv.AppendUint(arena, h%uint64(c.KeyCount), 10)
		e.key = arena[from:len(arena):len(arena)]
	}
	from := len(arena)
	arena = strconv.AppendInt(arena, int64(split), 10)
	arena = append(arena, '/')
	arena = strconv.AppendInt(arena, i, 10)
	arena = append(arena, ' ')
	for at := int(h >> 32 % uint64(len(letters))); len(arena)-from < c.RecordSize; at = 0 {
		arena = append(arena, filling[at:min(len(filling), at+c.RecordSize-(len(arena)-from))]...)
	}
	e.value = arena[from:len(arena):len(arena)]
	return arena
}

// room is how much arena a record needs at most.
func (c *Config) room() int { return c.RecordSize + 64 }

// fill overwrites everything of rec but the split id.
func (e *element) fill(rec *sdk.Record, split int) {
	rec.Key, rec.Value, rec.Headers = e.key, e.value, nil
	rec.Time = epochStart.Add(time.Duration(e.index) * time.Millisecond)
	rec.Topic, rec.Partition, rec.Epoch, rec.Offset, rec.Sequence = topic, int32(split), -1, e.index, ""
}

func (e *element) size() int64 { return int64(len(e.key) + len(e.value)) }

// mix is a finaliser that spreads neighbouring numbers over all bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
