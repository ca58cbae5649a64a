// Package minimal is a whole source, in sixty lines, of any system that has parts with numbered lines. Package cursor is one for a difficult system.
package minimal

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Split is a part of the system, and the number of its next line to emit.
type Split struct {
	Part string
	Next int64
}

// Source reads the parts that List answers. Read answers lines of one from a number on, none if there are none yet, and io.EOF at its end.
type Source struct {
	List     func(context.Context, base.Round) ([]Split, error)
	Interval time.Duration
	Read     func(ctx context.Context, part string, from int64) ([]string, error)
}

// SplitID implements [sdk.Split].
func (s Split) SplitID() sdk.SplitID { return sdk.SplitID(s.Part) }

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability { return base.Capability("minimal", "1.0.0") }

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return sdk.JSONCodec[Split]{Current: 1} }

// NewEnumerator implements [sdk.Source].
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	return base.NewEnumerator(ctx, state, base.EnumeratorConfig[Split]{Discover: s.List, Interval: s.Interval})
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	return base.NewReader(ctx, base.Config[string, Split, Split]{
		Fetcher: func() (base.SplitReader[string, Split], error) { return &fetcher{source: s}, nil },
		Emit: func(line string, at *Split, out sdk.Output) error { // the record and the position change together
			if out.Emit(sdk.Record{Value: []byte(line), Topic: at.Part, Epoch: -1, Offset: at.Next}) {
				at.Next++
			}
			return nil
		},
	})
}

type fetcher struct {
	base.Rota[Split]
	source *Source
}

func (f *fetcher) Fetch(ctx context.Context) (got base.Fetched[string], err error) {
	at := f.Next() // how far it was fetched; only Emit moves what a checkpoint sees
	lines, err := f.source.Read(ctx, at.Part, at.Next)
	at.Next += int64(len(lines))
	got.Chunks = []base.Chunk[string]{{Split: at.SplitID(), Elements: lines}}
	if errors.Is(err, io.EOF) {
		f.Finish(at.SplitID())
		got.Finished, err = []sdk.SplitID{at.SplitID()}, nil
	}
	return got, err
}
