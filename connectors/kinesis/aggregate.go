package kinesis

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what the format and the service use; nothing is protected by it
	"math/big"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// aggregateMagic begins what the Kinesis Producer Library makes of several records; a digest of what is in between ends it.
var aggregateMagic = []byte{0xf3, 0x89, 0x9a, 0xc2}

// maxParts bounds the records of one aggregate. A record has at most 10 MiB and a part at least two bytes, but more than this is no batch that
// somebody meant.
const maxParts = 1 << 20

// part is one record of an aggregate. Its slices belong to the aggregate.
type part struct {
	key      []byte
	explicit []byte // decimal hash key that was asked for instead of the key's digest, or nil
	data     []byte
	sub      int64 // its number in the aggregate
	more     bool  // further parts follow
}

// finding says what a stored record is.
type finding uint8

const (
	notAggregated finding = iota // no aggregate: a record like any other
	aggregated
	damaged // it begins and ends like an aggregate and cannot be read as one
)

// disaggregate takes an aggregate apart. Bytes that are no aggregate, whatever they begin with, are never an error: they are passed on as
// they are. Only what has the right digest and does not parse is damaged, and that is passed on too.
func disaggregate(data []byte) ([]part, finding) {
	if len(data) <= len(aggregateMagic)+md5.Size || !bytes.HasPrefix(data, aggregateMagic) {
		return nil, notAggregated
	}
	body, digest := data[len(aggregateMagic):len(data)-md5.Size], data[len(data)-md5.Size:]
	if sum := md5.Sum(body); !bytes.Equal(sum[:], digest) { //nolint:gosec // see the import
		return nil, notAggregated
	}
	keys, explicit, raw, ok := tables(body)
	if !ok {
		return nil, damaged
	}
	parts := make([]part, len(raw))
	for i := range raw {
		if parts[i], ok = decodePart(raw[i], keys, explicit); !ok {
			return nil, damaged
		}
		parts[i].sub, parts[i].more = int64(i), i < len(raw)-1
	}
	return parts, aggregated
}

// Fields of the messages.
const (
	fieldKeys, fieldExplicit, fieldRecords          = 1, 2, 3
	fieldKeyIndex, fieldExplicitIndex, fieldPayload = 1, 2, 3
)

// tables reads the outer message: the keys that records refer to, and the records. Unknown fields are skipped.
func tables(b []byte) (keys, explicit, records [][]byte, ok bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, nil, nil, false
		}
		b = b[n:]
		if kind != protowire.BytesType || number > fieldRecords {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return nil, nil, nil, false
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return nil, nil, nil, false
		}
		b = b[n:]
		switch int(number) {
		case fieldKeys:
			keys = append(keys, value)
		case fieldExplicit:
			explicit = append(explicit, value)
		case fieldRecords:
			if records = append(records, value); len(records) > maxParts {
				return nil, nil, nil, false
			}
		}
	}
	return keys, explicit, records, true
}

// decodePart reads one record. Its key and its data are required; an index outside of its table is damage.
func decodePart(b []byte, keys, explicit [][]byte) (p part, ok bool) {
	hasKey := false
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return part{}, false
		}
		b = b[n:]
		switch {
		case number == fieldPayload && kind == protowire.BytesType:
			if p.data, n = protowire.ConsumeBytes(b); n >= 0 && p.data == nil {
				p.data = []byte{}
			}
		case (number == fieldKeyIndex || number == fieldExplicitIndex) && kind == protowire.VarintType:
			var index uint64
			index, n = protowire.ConsumeVarint(b)
			table := keys
			if number == fieldExplicitIndex {
				table = explicit
			}
			if n < 0 || index >= uint64(len(table)) {
				return part{}, false
			}
			if number == fieldKeyIndex {
				p.key, hasKey = table[index], true
			} else {
				p.explicit = table[index]
			}
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return part{}, false
		}
		b = b[n:]
	}
	return p, hasKey && p.data != nil
}

// within reports that all parts belong to a range of hash keys: by the key that was asked for, or by the digest of the partition key.
func within(parts []part, hashes lineage.HashRange) bool {
	for i := range parts {
		var hash [16]byte
		if parts[i].explicit == nil {
			hash = md5.Sum(parts[i].key) //nolint:gosec // see the import
		} else if n, ok := hashKey(string(parts[i].explicit)); ok {
			hash = n
		} else {
			continue // no number: nothing can be said of it
		}
		if bytes.Compare(hash[:], hashes.Start[:]) < 0 || bytes.Compare(hash[:], hashes.End[:]) > 0 {
			return false
		}
	}
	return true
}

// maxHashKeyDigits: 2^128-1 has 39 digits.
const maxHashKeyDigits = 39

// hashKey reads a decimal 128-bit number.
func hashKey(text string) (out [16]byte, ok bool) {
	if text == "" || len(text) > maxHashKeyDigits || !lineage.Digits(text) {
		return out, false
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.BitLen() > 8*len(out) {
		return out, false
	}
	n.FillBytes(out[:])
	return out, true
}
