package connector

import (
	"context"
	"fmt"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// Source is a source without its types.
type Source interface {
	Capability() sdk.Capability
	NewEnumerator(ctx EnumeratorContext, state *sdk.VersionedBytes) (Enumerator, error)
	NewReader(ctx sdk.ReaderContext) (Reader, error)
	// Probe is nil when the source has no [sdk.Prober].
	Probe(ctx context.Context) error
	// Describe says where an encoded split stands.
	Describe(split protocol.Split) ([]sdk.Attribute, error)
}

// Erase turns a typed source into a [Source].
func Erase[S sdk.Split](source sdk.Source[S]) Source { return &erased[S]{source} }

type erased[S sdk.Split] struct{ source sdk.Source[S] }

func (e *erased[S]) Capability() sdk.Capability { return e.source.Capability() }

func (e *erased[S]) Probe(ctx context.Context) error {
	p, ok := e.source.(sdk.Prober)
	if !ok {
		return nil
	}
	return Guard("Probe", func() error { return p.Probe(ctx) })
}

func (e *erased[S]) NewReader(ctx sdk.ReaderContext) (Reader, error) {
	r := &reader[S]{codec: e.source.SplitCodec()}
	err := Guard("NewReader", func() (err error) {
		r.reader, err = e.source.NewReader(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (e *erased[S]) NewEnumerator(ctx EnumeratorContext, state *sdk.VersionedBytes) (Enumerator, error) {
	codec := e.source.SplitCodec()
	en := &enumerator[S]{codec: codec}
	err := Guard("NewEnumerator", func() (err error) {
		en.enumerator, err = e.source.NewEnumerator(&enumeratorContext[S]{ctx, codec}, state)
		return err
	})
	if err != nil {
		return nil, err
	}
	return en, nil
}

func (e *erased[S]) Describe(split protocol.Split) (attributes []sdk.Attribute, err error) {
	err = Guard("Decode", func() error {
		s, err := e.source.SplitCodec().Decode(split.Data.Version, split.Data.Data)
		if err != nil {
			return fmt.Errorf("split %s: %w", split.ID, err)
		}
		if d, ok := any(s).(sdk.Describer); ok {
			attributes = d.Describe()
		}
		return nil
	})
	return attributes, err
}

func encode[S sdk.Split](codec sdk.Codec[S], split S) (protocol.Split, error) {
	id := split.SplitID()
	if id == "" || len(id) > sdk.MaxSplitIDBytes {
		return protocol.Split{}, sdk.Fatalf("split id %.64q has %d bytes (1 to %d are allowed)", id, len(id), sdk.MaxSplitIDBytes)
	}
	data, err := codec.Encode(split)
	if err != nil {
		return protocol.Split{}, fmt.Errorf("encode split %s: %w", id, err)
	}
	return protocol.Split{ID: id, Data: sdk.VersionedBytes{Version: codec.Version(), Data: data}}, nil
}

func encodeAll[S sdk.Split](codec sdk.Codec[S], splits []S) ([]protocol.Split, error) {
	out := make([]protocol.Split, len(splits))
	for i, s := range splits {
		var err error
		if out[i], err = encode(codec, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decodeAll[S sdk.Split](codec sdk.Codec[S], splits []protocol.Split) ([]S, error) {
	out := make([]S, len(splits))
	for i, s := range splits {
		v, err := codec.Decode(s.Data.Version, s.Data.Data)
		if err != nil {
			// The same bytes fail again after a restart.
			return nil, sdk.Fatalf("decode split %s: %w", s.ID, err)
		}
		if v.SplitID() != s.ID {
			return nil, sdk.Fatalf("%w: split %s decodes to %s", sdk.ErrCorrupt, s.ID, v.SplitID())
		}
		out[i] = v
	}
	return out, nil
}
