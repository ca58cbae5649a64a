package kinesistest

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// sequence is what a sequence number holds: 56 decimal digits, which in hexadecimal are
//
//	2 ccccccccc 0 iiiiiiiiiiiiiiii 00 wwwwwwwww ssssssss 2
//
// created: second in which the shard was made; a child's is later than its parents', so its numbers are higher;
// index: counts the writes of the stream; written: second of the write; shard: number of the shard.
type sequence struct {
	created int64
	index   uint64
	written int64
	shard   uint32
}

const (
	sequenceFormat = "2%09x0%016x00%09x%08x2"
	sequenceHex    = 47
	// maxSequenceDigits is how long the service lets a sequence number be.
	maxSequenceDigits = 129
	// indexStep leaves numbers between two records that belong to none, which is what a continuation number of a subscription is.
	indexStep = 16
	// endIndex is in the number with which a closed shard ends: above all records.
	endIndex = math.MaxInt64
	// maxSeconds fits the nine digits.
	maxSeconds = 1<<36 - 1
)

func (q sequence) String() string {
	text := fmt.Sprintf(sequenceFormat, q.created, q.index, q.written, q.shard)
	n, _ := new(big.Int).SetString(text, 16)
	return n.String()
}

// seconds are those of t as a sequence number can hold them.
func seconds(t time.Time) int64 { return min(max(t.Unix(), 0), maxSeconds) }

func parseSequence(s string) (q sequence, ok bool) {
	n, ok := parseDecimal(s, maxSequenceDigits)
	if !ok {
		return q, false
	}
	text := n.Text(16)
	if len(text) != sequenceHex || text[0] != '2' || text[10] != '0' || text[27:29] != "00" || !strings.HasSuffix(text, "2") {
		return q, false
	}
	var failed error
	field := func(from, to int) uint64 {
		n, err := strconv.ParseUint(text[from:to], 16, 64)
		if err != nil {
			failed = err
		}
		return n
	}
	q = sequence{created: int64(field(1, 10)), index: field(11, 27), written: int64(field(29, 38)), shard: uint32(field(38, 46))}
	return q, failed == nil
}
