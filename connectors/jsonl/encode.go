package jsonl

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/penstock-dev/penstock/sdk"
)

// Encoder appends records as JSON lines. The zero value is ready to use. It remembers what consecutive records usually
// share, the place and the second of the time, so one belongs to one goroutine.
type Encoder struct {
	head      []byte // `{"topic":"t","partition":3,"offset":` for topic and partition, `{"stream":"s","shard":"n","sequence":` for stream and shard
	topic     string
	partition int32
	shard     sdk.SplitID

	stamp  []byte // `2026-01-02T03:04:05.` for second
	second int64
}

// named is the partition of a record whose part of the stream has a name, the split's, and no number.
const named = -1

const stampLayout = "2006-01-02T15:04:05."

// Append appends rec as one line, with its newline, to dst and returns the extended slice. It keeps nothing of rec but the
// topic.
func (e *Encoder) Append(dst []byte, rec *sdk.Record) []byte {
	if e.head == nil || rec.Partition != e.partition || rec.Topic != e.topic || rec.Partition == named && rec.Split != e.shard {
		e.remember(rec)
	}
	dst = append(dst, e.head...)
	if rec.Partition == named {
		return e.appendSharded(dst, rec)
	}
	dst = strconv.AppendInt(dst, rec.Offset, 10)
	if rec.Sequence != "" {
		dst = append(dst, `,"sequence":`...)
		dst = appendString(dst, rec.Sequence)
	}
	dst = e.appendContent(dst, rec)
	if len(rec.Headers) == 0 {
		return append(dst, `,"headers":[]}`+"\n"...)
	}
	return appendHeaders(dst, rec.Headers)
}

// appendSharded goes on with a record whose part of the stream has a name, after the head.
func (e *Encoder) appendSharded(dst []byte, rec *sdk.Record) []byte {
	dst = appendString(dst, rec.Sequence)
	dst = append(dst, `,"subsequence":`...)
	dst = strconv.AppendInt(dst, rec.Offset, 10)
	dst = e.appendContent(dst, rec)
	if len(rec.Headers) == 0 {
		return append(dst, "}\n"...)
	}
	return appendHeaders(dst, rec.Headers)
}

// appendContent appends time, key and value.
func (e *Encoder) appendContent(dst []byte, rec *sdk.Record) []byte {
	dst = append(dst, `,"timestamp":`...)
	dst = e.appendTime(dst, rec.Time)
	dst = append(dst, `,"key":`...)
	dst, text := appendBytes(dst, rec.Key)
	if !text {
		dst = append(dst, `,"key_encoding":"base64"`...)
	}
	dst = append(dst, `,"value":`...)
	dst, text = appendBytes(dst, rec.Value)
	if !text {
		dst = append(dst, `,"value_encoding":"base64"`...)
	}
	return dst
}

func (e *Encoder) remember(rec *sdk.Record) {
	e.topic, e.partition, e.shard = rec.Topic, rec.Partition, rec.Split
	if rec.Partition == named {
		e.head = append(e.head[:0], `{"stream":`...)
		e.head = appendString(e.head, rec.Topic)
		e.head = append(e.head, `,"shard":`...)
		e.head = appendString(e.head, string(rec.Split))
		e.head = append(e.head, `,"sequence":`...)
		return
	}
	e.head = append(e.head[:0], `{"topic":`...)
	e.head = appendString(e.head, rec.Topic)
	e.head = append(e.head, `,"partition":`...)
	e.head = strconv.AppendInt(e.head, int64(rec.Partition), 10)
	e.head = append(e.head, `,"offset":`...)
}

// appendTime writes milliseconds; what is finer is cut off. A year outside of 0 to 9999 is written as it is, though RFC 3339 has
// no such years: losing the value would be worse.
func (e *Encoder) appendTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	if s := t.Unix(); len(e.stamp) == 0 || s != e.second {
		e.second = s
		e.stamp = t.UTC().AppendFormat(e.stamp[:0], stampLayout)
	}
	ms := t.Nanosecond() / int(time.Millisecond)
	dst = append(dst, '"')
	dst = append(dst, e.stamp...)
	return append(dst, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

func appendHeaders(dst []byte, headers []sdk.Header) []byte {
	dst = append(dst, `,"headers":[`...)
	for i := range headers {
		h := &headers[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"key":`...)
		if utf8.ValidString(h.Key) {
			dst = appendString(dst, h.Key)
		} else {
			dst, _ = appendBytes(dst, []byte(h.Key))
			dst = append(dst, `,"key_encoding":"base64"`...)
		}
		dst = append(dst, `,"value":`...)
		var text bool
		dst, text = appendBytes(dst, h.Value)
		if !text {
			dst = append(dst, `,"value_encoding":"base64"`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}\n"...)
}

// appendBytes writes null, a string, or base64; it reports false for the last.
func appendBytes(dst, b []byte) ([]byte, bool) {
	if b == nil {
		return append(dst, "null"...), true
	}
	if plain(b) {
		dst = append(dst, '"')
		dst = append(dst, b...)
		return append(dst, '"'), true
	}
	if !utf8.Valid(b) {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, b)
		return append(dst, '"'), false
	}
	return appendEscaped(dst, b), true
}

// appendString writes names, which are text in every system; bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if special(s[i]) {
			valid := make([]byte, 0, len(s))
			for _, r := range s { // ranging over a string replaces what is not UTF-8
				valid = utf8.AppendRune(valid, r)
			}
			return appendEscaped(dst, valid)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// special reports bytes that a JSON string cannot hold as they are, or that need a look at their neighbours.
func special(c byte) bool { return c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' }

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// plain reports that no byte is [special], looking at eight at a time: a byte's top bit ends up set in one of the four terms
// exactly when it is special. A borrow can reach a neighbour only from a byte that is itself special, so it never turns
// the answer wrong.
func plain(b []byte) bool {
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		if (w|(w-0x20*ones)|((w^'"'*ones)-ones)|((w^'\\'*ones)-ones))&high != 0 {
			return false
		}
		b = b[8:]
	}
	return !slices.ContainsFunc(b, special)
}

const hexDigits = "0123456789abcdef"

// appendEscaped writes valid UTF-8 as a JSON string. Only what JSON demands is escaped. Eight bytes that need nothing go over
// in one step, the others one by one: copying runs costs more where a quote stands every few bytes, as in JSON.
func appendEscaped(dst, b []byte) []byte {
	dst = append(slices.Grow(dst, len(b)+len(b)/4+2), '"')
	for len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		if escapes(w) == 0 {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		} else {
			for _, c := range b[:8] {
				dst = appendByte(dst, c)
			}
		}
		b = b[8:]
	}
	for _, c := range b {
		dst = appendByte(dst, c)
	}
	return append(dst, '"')
}

// escapes is not 0 when a byte of w must be escaped. It may err on the side of not 0.
func escapes(w uint64) uint64 {
	return ((w - 0x20*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) &^ w & high
}

func appendByte(dst []byte, c byte) []byte {
	if c >= 0x20 && c != '"' && c != '\\' {
		return append(dst, c)
	}
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
}
