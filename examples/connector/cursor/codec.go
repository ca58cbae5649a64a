package cursor

import (
	"errors"
	"fmt"

	"github.com/penstock-dev/penstock/sdk"
)

// Codec keeps splits. Version 1 had no id of the last event, so that a page that lost an event between two runs made the source skip one.
// Version 2 has it. What version 1 wrote is read as it was: without the check.
type Codec struct{}

const codecVersion = 2

// splitV1 is a split of version 1. It never changes again.
type splitV1 struct {
	Stream string `json:"stream"`
	Cursor string `json:"cursor"`
	Done   int    `json:"done"`
}

// Version implements [sdk.Codec].
func (Codec) Version() int { return codecVersion }

// Encode implements [sdk.Codec]. It writes the newest version only.
func (Codec) Encode(s Split) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("cursor: encode split %q: %w", s.Stream, err)
	}
	return sdk.JSONCodec[Split]{Current: codecVersion}.Encode(s)
}

// Decode implements [sdk.Codec]. It reads every version that was ever published.
func (Codec) Decode(version int, data []byte) (s Split, err error) {
	switch version {
	case 1:
		var old splitV1
		old, err = sdk.JSONCodec[splitV1]{Current: 1}.Decode(1, data)
		s = Split{Stream: old.Stream, Place: Place{Cursor: old.Cursor, Done: old.Done}}
	case 2:
		s, err = sdk.JSONCodec[Split]{Current: 2}.Decode(2, data)
	default:
		return Split{}, sdk.UnknownVersion("cursor split", version, codecVersion)
	}
	if err != nil {
		return Split{}, err
	}
	if err := s.check(); err != nil {
		return Split{}, fmt.Errorf("%w: cursor split: %w", sdk.ErrCorrupt, err)
	}
	return s, nil
}

// check reports what no split can be.
func (s Split) check() error {
	switch {
	case s.Stream == "" || len(s.Stream) > sdk.MaxSplitIDBytes:
		return errors.New("a stream has a name, of at most 1024 bytes")
	case s.Done < 0 || s.Done > MaxPageSize:
		return fmt.Errorf("%d events of a page cannot be done: it has 0 to %d", s.Done, MaxPageSize)
	case s.Done == 0 && s.Last != "":
		return fmt.Errorf("nothing of the page is done, and yet %q was the last", s.Last)
	}
	return nil
}
