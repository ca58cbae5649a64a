package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// ErrLine marks a line that [Encoder] cannot have written: torn, or of another format.
var ErrLine = errors.New("not a JSON line of a record")

type line struct {
	Topic         string     `json:"topic"`
	Partition     int32      `json:"partition"`
	Offset        int64      `json:"offset"`
	Stream        *string    `json:"stream"`
	Shard         string     `json:"shard"`
	Sequence      string     `json:"sequence"`
	Subsequence   int64      `json:"subsequence"`
	Timestamp     *time.Time `json:"timestamp"`
	Key           *string    `json:"key"`
	KeyEncoding   string     `json:"key_encoding"`
	Value         *string    `json:"value"`
	ValueEncoding string     `json:"value_encoding"`
	Headers       []header   `json:"headers"`
}

type header struct {
	Key           string  `json:"key"`
	KeyEncoding   string  `json:"key_encoding"`
	Value         *string `json:"value"`
	ValueEncoding string  `json:"value_encoding"`
}

// Decode reads one line, with or without its newline, back into a record that the caller owns. Errors wrap [ErrLine].
func Decode(data []byte) (sdk.Record, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return sdk.Record{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return sdk.Record{}, fmt.Errorf("%w: bytes after the object", ErrLine)
	}
	rec := sdk.Record{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Sequence: l.Sequence, Epoch: -1}
	if l.Stream != nil {
		rec.Topic, rec.Partition, rec.Split, rec.Offset = *l.Stream, named, sdk.SplitID(l.Shard), l.Subsequence
	}
	if l.Timestamp != nil {
		rec.Time = *l.Timestamp
	}
	var err, all error
	rec.Key, err = decodeBytes("key", l.Key, l.KeyEncoding)
	all = errors.Join(all, err)
	rec.Value, err = decodeBytes("value", l.Value, l.ValueEncoding)
	all = errors.Join(all, err)
	for _, h := range l.Headers {
		key, err := decodeBytes("header key", &h.Key, h.KeyEncoding)
		all = errors.Join(all, err)
		value, err := decodeBytes("header value", h.Value, h.ValueEncoding)
		all = errors.Join(all, err)
		rec.Headers = append(rec.Headers, sdk.Header{Key: string(key), Value: value})
	}
	return rec, all
}

func decodeBytes(what string, s *string, encoding string) ([]byte, error) {
	switch {
	case encoding != "" && encoding != "base64":
		return nil, fmt.Errorf("%w: %s has encoding %q, known is base64", ErrLine, what, encoding)
	case s == nil:
		return nil, nil
	case encoding == "":
		return []byte(*s), nil
	}
	b, err := base64.StdEncoding.DecodeString(*s)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrLine, what, err)
	}
	return b, nil
}
