package base

import (
	"slices"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

type rotaSplit struct {
	id string
	at int
}

func (s rotaSplit) SplitID() sdk.SplitID { return sdk.SplitID(s.id) }

// whoIsNext answers whose turns the next ones are, and moves each position.
func whoIsNext(r *Rota[rotaSplit], turns int) (ids []string) {
	for range turns {
		s := r.Next()
		if s == nil {
			return append(ids, "nobody")
		}
		s.at++
		ids = append(ids, s.id)
	}
	return ids
}

func TestEachSplitHasItsTurn(t *testing.T) {
	t.Parallel()
	var r Rota[rotaSplit]
	steps := []struct {
		what   string
		change Change[rotaSplit]
		finish sdk.SplitID
		want   []string
		active int
	}{
		{"nothing was added", Change[rotaSplit]{}, "", []string{"nobody"}, 0},
		{"three", Change[rotaSplit]{Added: []rotaSplit{{id: "a"}, {id: "b"}, {id: "c"}}}, "", []string{"a", "b", "c", "a"}, 3},
		{"one more comes last", Change[rotaSplit]{Added: []rotaSplit{{id: "d"}}}, "", []string{"b", "c", "d", "a", "b"}, 4},
		{"paused", Change[rotaSplit]{Paused: []sdk.SplitID{"c", "a"}}, "", []string{"d", "b", "d"}, 2},
		{"resumed", Change[rotaSplit]{Resumed: []sdk.SplitID{"c"}}, "", []string{"b", "c", "d"}, 3},
		{"finished, before whose turn it is", Change[rotaSplit]{}, "a", []string{"b", "c"}, 3},
		{"removed, whose turn it is", Change[rotaSplit]{Removed: []sdk.SplitID{"d"}}, "", []string{"b", "c", "b"}, 2},
		{
			"removed and added again, paused",
			Change[rotaSplit]{Removed: []sdk.SplitID{"b"}, Added: []rotaSplit{{id: "b"}}, Paused: []sdk.SplitID{"b"}},
			"",
			[]string{"c", "c"},
			1,
		},
		{"the last one is paused", Change[rotaSplit]{Paused: []sdk.SplitID{"c"}}, "", []string{"nobody"}, 0},
		{"all are gone", Change[rotaSplit]{Removed: []sdk.SplitID{"c", "b"}}, "", []string{"nobody"}, 0},
	}
	for _, s := range steps {
		if s.finish != "" {
			r.Finish(s.finish)
		}
		if err := r.HandleSplits(s.change); err != nil {
			t.Fatal(err)
		}
		if got := whoIsNext(&r, len(s.want)); !slices.Equal(got, s.want) || r.Active() != s.active {
			t.Errorf("%s: the turns are %v, %d active, want %v, %d", s.what, got, r.Active(), s.want, s.active)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// The position that is fetched is the fetcher's own.
func TestAPositionInARotaIsACopy(t *testing.T) {
	t.Parallel()
	given := []rotaSplit{{id: "a", at: 7}}
	var r Rota[rotaSplit]
	if err := r.HandleSplits(Change[rotaSplit]{Added: given}); err != nil {
		t.Fatal(err)
	}
	r.Next().at++
	if again := r.Next(); given[0].at != 7 || again.at != 8 {
		t.Errorf("the split that was given is at %d, the one in the rota at %d", given[0].at, again.at)
	}
}

var _ interface {
	HandleSplits(Change[rotaSplit]) error
	Close() error
} = (*Rota[rotaSplit])(nil)
