package kinesistest

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"math/big"
)

// hashKey is a point of the ring 0..2^128-1 that shards divide among themselves, big-endian.
type hashKey [md5.Size]byte

var (
	lowest  hashKey
	highest = hashKey(bytes.Repeat([]byte{0xff}, md5.Size))
	one     = big.NewInt(1)
	ring    = new(big.Int).Lsh(one, 8*md5.Size)
)

func hashOf(partitionKey string) hashKey { return md5.Sum([]byte(partitionKey)) }

// maxHashDigits is the length of 2^128-1 in decimal.
const maxHashDigits = 39

func parseHash(s string) (hashKey, error) {
	n, ok := parseDecimal(s, maxHashDigits)
	if !ok || n.Cmp(ring) >= 0 {
		return hashKey{}, fail(invalidArgument, "hash key %q: want a decimal number from 0 to 2^128-1", clip(s))
	}
	return hashFrom(n), nil
}

// hashFrom returns n, which is on the ring.
func hashFrom(n *big.Int) (k hashKey) {
	n.FillBytes(k[:])
	return k
}

func (k hashKey) number() *big.Int      { return new(big.Int).SetBytes(k[:]) }
func (k hashKey) String() string        { return k.number().String() }
func (k hashKey) compare(o hashKey) int { return bytes.Compare(k[:], o[:]) }

// before is the point one below k, which is not the lowest.
func (k hashKey) before() hashKey { return hashFrom(new(big.Int).Sub(k.number(), one)) }

// hashRange holds both ends.
type hashRange struct{ start, end hashKey }

func (r hashRange) contains(k hashKey) bool { return r.start.compare(k) <= 0 && k.compare(r.end) <= 0 }

// within reports that r lies in o.
func (r hashRange) within(o hashRange) bool { return o.contains(r.start) && o.contains(r.end) }

// adjoins reports that o begins where r ends.
func (r hashRange) adjoins(o hashRange) bool {
	return o.start != lowest && o.start.before() == r.end
}

// middle is where a split into halves begins its second half; false when r is a single point.
func (r hashRange) middle() (hashKey, bool) {
	if r.start == r.end {
		return hashKey{}, false
	}
	sum := new(big.Int).Add(r.start.number(), r.end.number())
	return hashFrom(sum.Rsh(sum.Add(sum, one), 1)), true
}

func (r hashRange) wire() *wireHashRange {
	return &wireHashRange{StartingHashKey: r.start.String(), EndingHashKey: r.end.String()}
}

// evenRanges divides the ring into n ranges of the same size, the last one taking what is left over.
func evenRanges(n int) []hashRange {
	width := new(big.Int).Div(ring, big.NewInt(int64(n)))
	ranges := make([]hashRange, n)
	for i := range ranges {
		ranges[i] = hashRange{start: hashFrom(new(big.Int).Mul(width, big.NewInt(int64(i)))), end: highest}
		if i > 0 {
			ranges[i-1].end = ranges[i].start.before()
		}
	}
	return ranges
}

// parseDecimal reads a number without sign, spaces or leading zeros, of no more digits than given.
func parseDecimal(s string, digits int) (*big.Int, bool) {
	if s == "" || len(s) > digits || (s[0] == '0' && len(s) > 1) {
		return nil, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return nil, false
		}
	}
	return new(big.Int).SetString(s, 10)
}

// clip keeps messages about what a client sent short.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", s[:most], len(s))
}
