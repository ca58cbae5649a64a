package base

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/penstock-dev/penstock/sdk"
)

// TestEnumerator runs the scripts. A script has one enumerator and one desk; every verb prints what the enumerator asked
// the engine for. Splits are written name@position, a discovery's list is what exists at that moment.
func TestEnumerator(t *testing.T) {
	datadriven.Walk(t, "testdata/enumerator", func(t *testing.T, path string) {
		s := &stage{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(d) })
	})
}

// stage is the world of a script.
type stage struct {
	t      *testing.T
	e      *Enumerator[at]
	desk   *desk
	exists []at
	broken error
	rounds []string
	states map[int64]sdk.VersionedBytes
}

func (s *stage) run(d *datadriven.TestData) string {
	var err error
	switch d.Cmd {
	case "new": // parallelism=N interval=D bounded durable strategy=S fail-after=N no-checkpoints; restore=N from that snapshot
		err = s.create(d)
	case "exists": // splits: what the next discoveries find
		s.exists = s.splits(d)
	case "broken": // [reason]: discoveries fail from now on, with "fatal" for good
		s.broken = nil
		if len(d.CmdArgs) > 0 {
			s.broken = errors.New(d.CmdArgs[0].Key)
			if d.CmdArgs[0].Key == "fatal" {
				s.broken = sdk.Fatal(s.broken)
			}
		}
	case "start":
		err = s.e.Start()
	case "finish-call": // the running discovery returns
		if !s.desk.finish() {
			return "nothing runs\n"
		}
	case "reader": // ID [held splits]: it registers
		reader := sdk.ReaderInfo{ID: sdk.ReaderID(s.number(d.CmdArgs[0].Key))}
		for _, a := range d.CmdArgs[1:] {
			reader.Splits = append(reader.Splits, sdk.SplitID(a.Key))
		}
		s.desk.register(reader.ID)
		err = s.e.AddReader(reader)
	case "gone": // ID: the reader is not registered any more
		id := sdk.ReaderID(s.number(d.CmdArgs[0].Key))
		s.desk.readers = slices.DeleteFunc(s.desk.readers, func(r sdk.ReaderID) bool { return r == id })
	case "return": // splits
		err = s.e.ReturnSplits(s.splits(d))
	case "finished": // splits
		err = s.e.SplitsFinished(s.splits(d))
	case "snapshot": // ID
		id := s.number(d.CmdArgs[0].Key)
		s.states[id], err = s.e.Snapshot(sdk.CheckpointID(id))
	case "complete": // ID
		err = s.e.CheckpointComplete(sdk.CheckpointID(s.number(d.CmdArgs[0].Key)))
	case "abort": // ID
		err = s.e.CheckpointAborted(sdk.CheckpointID(s.number(d.CmdArgs[0].Key)))
	case "room": // N: splits that Assign takes until the next room
		s.desk.room = int(s.number(d.CmdArgs[0].Key))
	case "pass": // DURATION
		by, parseErr := time.ParseDuration(d.CmdArgs[0].Key)
		if parseErr != nil {
			s.t.Fatal(parseErr)
		}
		s.desk.pass(by)
	case "trigger":
		s.e.Trigger()
	case "state": // prints every split
		return s.state()
	case "close":
		err = s.e.Close()
	default:
		s.t.Fatalf("%s: unknown verb %q", d.Pos, d.Cmd)
	}
	out := strings.Join(append(s.rounds, s.desk.log...), "\n")
	s.rounds, s.desk.log = nil, nil
	if err != nil {
		out += "\nerror: " + err.Error()
	}
	if out = strings.TrimPrefix(out, "\n"); out == "" {
		return "ok\n"
	}
	return out + "\n"
}

func (s *stage) create(d *datadriven.TestData) error {
	cfg := EnumeratorConfig[at]{
		Discover:  s.discover,
		Bounded:   d.HasArg("bounded"),
		Durable:   d.HasArg("durable"),
		OnRemoved: func(ids []sdk.SplitID) { s.desk.say("removed %v", ids) },
	}
	parallelism := 1
	d.MaybeScanArgs(s.t, "parallelism", &parallelism)
	d.MaybeScanArgs(s.t, "fail-after", &cfg.FailAfter)
	text := ""
	if d.MaybeScanArgs(s.t, "interval", &text) {
		var err error
		if cfg.Interval, err = time.ParseDuration(text); err != nil {
			s.t.Fatal(err)
		}
	}
	if d.MaybeScanArgs(s.t, "strategy", &text) {
		cfg.Assign = map[string]Strategy[at]{"round-robin": RoundRobin[at], "hash": ByHash[at], "least-loaded": LeastLoaded[at]}[text]
	}
	if d.MaybeScanArgs(s.t, "topics", &text) {
		cfg.Identity = []sdk.Attribute{{Name: "topics", Value: text}}
	}
	s.desk = newDesk(parallelism)
	s.desk.checkpoints = !d.HasArg("no-checkpoints")
	if s.states == nil {
		s.states = make(map[int64]sdk.VersionedBytes)
	}
	var state *sdk.VersionedBytes
	restore := int64(0)
	if d.MaybeScanArgs(s.t, "restore", &restore) {
		stored := s.states[restore]
		state = &stored
	}
	var err error
	s.e, err = NewEnumerator(s.desk, state, cfg)
	return err
}

func (s *stage) discover(_ context.Context, round Round) ([]at, error) {
	var known []string
	for _, x := range s.exists {
		if round.Known(x.SplitID()) {
			known = append(known, x.Name)
		}
	}
	s.rounds = append(s.rounds, fmt.Sprintf("discover first=%t known=%v", round.First, known))
	return s.exists, s.broken
}

func (s *stage) state() string {
	var b strings.Builder
	fmt.Fprintf(&b, "first discovery done: %t\n", s.e.ledger.firstDone)
	names := map[phase]string{unknown: "unknown", gated: "gated", waiting: "waiting", assigned: "assigned", finished: "finished"}
	for _, e := range s.e.ledger.sorted() {
		fmt.Fprintf(&b, "%s %s", e.id, names[e.phase])
		switch {
		case e.phase == assigned && e.owner != nobody:
			fmt.Fprintf(&b, " reader=%d", e.owner)
		case e.phase == gated, e.phase == waiting:
			fmt.Fprintf(&b, " at=%d", e.split.Next)
		}
		if e.removed {
			b.WriteString(" removed")
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "owned %v\n", s.e.ledger.owned)
	return b.String()
}

// splits reads name@position words from the arguments; a{1..3} is a1 a2 a3.
func (s *stage) splits(d *datadriven.TestData) []at {
	var out []at
	for _, a := range d.CmdArgs {
		name, position, _ := strings.Cut(a.Key, "@")
		next := int64(0)
		if position != "" {
			next = s.number(position)
		}
		stem, span, many := strings.Cut(name, "{")
		if !many {
			out = append(out, at{name, next})
			continue
		}
		from, to, _ := strings.Cut(strings.TrimSuffix(span, "}"), "..")
		for i := s.number(from); i <= s.number(to); i++ {
			out = append(out, at{stem + strconv.FormatInt(i, 10), next})
		}
	}
	return out
}

func (s *stage) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestNewEnumeratorNamesEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := NewEnumerator(newDesk(1), nil, EnumeratorConfig[at]{
		Interval: -1, Timeout: -1, FailAfter: -2, Identity: []sdk.Attribute{{Name: "a"}, {Name: "a"}},
	})
	for _, name := range []string{"Discover", "Interval", "Timeout", "FailAfter", `"a" twice`} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("does not name %s: %v", name, err)
		}
	}
}

func TestRestoredStateOfAnotherIdentityIsRefused(t *testing.T) {
	t.Parallel()
	cfg := EnumeratorConfig[at]{
		Discover: func(context.Context, Round) ([]at, error) { return nil, nil },
		Identity: []sdk.Attribute{{Name: "topics", Value: "orders"}, {Name: "stop", Value: "latest"}},
	}
	e, err := NewEnumerator(newDesk(1), nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	state, err := e.Snapshot(1)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Identity = []sdk.Attribute{{Name: "isolation", Value: "none"}, {Name: "topics", Value: "riders"}}
	_, err = NewEnumerator(newDesk(1), &state, cfg)
	if !errors.Is(err, sdk.ErrIncompatibleState) {
		t.Fatalf("error %v, want ErrIncompatibleState", err)
	}
	for _, part := range []string{`topics was "orders" and is configured as "riders"`, `stop was "latest"`, `isolation is configured as "none"`, "or start without it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	slices.Reverse(cfg.Identity)
	cfg.Identity = []sdk.Attribute{{Name: "stop", Value: "latest"}, {Name: "topics", Value: "orders"}}
	if _, err := NewEnumerator(newDesk(1), &state, cfg); err != nil {
		t.Errorf("another order of the attributes: %v", err)
	}
}

func TestAStateOfAnotherIdentityIsTakenWhereCompatibleSaysSo(t *testing.T) {
	t.Parallel()
	cfg := EnumeratorConfig[at]{
		Discover: func(context.Context, Round) ([]at, error) { return nil, nil },
		Identity: []sdk.Attribute{{Name: "topics", Value: "a"}, {Name: "stop", Value: "latest"}},
	}
	e, err := NewEnumerator(newDesk(1), nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	state, err := e.Snapshot(1)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	cfg.Compatible = func(stored, configured sdk.Attribute) bool {
		asked = append(asked, stored.Name+" "+stored.Value+" "+configured.Name+" "+configured.Value)
		return configured.Name == "topics" && strings.HasPrefix(configured.Value, stored.Value)
	}
	cfg.Identity = []sdk.Attribute{{Name: "topics", Value: "a,b"}, {Name: "stop", Value: "latest"}}
	e, err = NewEnumerator(newDesk(1), &state, cfg)
	if err != nil || len(asked) != 1 || asked[0] != "topics a topics a,b" {
		t.Fatalf("error %v, asked %q", err, asked)
	}
	grown, err := e.Snapshot(2)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Identity = []sdk.Attribute{{Name: "topics", Value: "a,b"}, {Name: "stop", Value: "offset"}}
	for _, s := range []sdk.VersionedBytes{state, grown} {
		if _, err := NewEnumerator(newDesk(1), &s, cfg); !errors.Is(err, sdk.ErrIncompatibleState) {
			t.Errorf("another stop: error %v", err)
		}
	}
	asked = nil
	cfg.Identity = []sdk.Attribute{{Name: "topics", Value: "a"}, {Name: "stop", Value: "latest"}}
	if _, err := NewEnumerator(newDesk(1), &grown, cfg); !errors.Is(err, sdk.ErrIncompatibleState) || !slices.Equal(asked, []string{"topics a,b topics a"}) {
		t.Errorf("the snapshot of the larger list: error %v, asked %q", err, asked)
	}
}

func TestARoundKnowsWhichSplitsAreExpected(t *testing.T) {
	t.Parallel()
	l := newLedger[at](1)
	if _, _, err := l.discovered([]at{{"a", 0}, {"b", 0}, {"c", 0}}, false); err != nil {
		t.Fatal(err)
	}
	l.ended([]at{{"b", 7}})
	round := l.round()
	l.ended([]at{{"c", 7}}) // after the round began
	if got := slices.Collect(round.Unfinished); !slices.Equal(got, []sdk.SplitID{"a", "c"}) {
		t.Errorf("unfinished are %q", got)
	}
}

func TestStrategyOutOfRangeIsAnError(t *testing.T) {
	t.Parallel()
	d := newDesk(2)
	e, err := NewEnumerator(d, nil, EnumeratorConfig[at]{
		Discover: func(context.Context, Round) ([]at, error) { return []at{{"a", 0}}, nil },
		Assign:   func(at, Placement) sdk.ReaderID { return 2 },
	})
	if err != nil {
		t.Fatal(err)
	}
	d.readers = []sdk.ReaderID{0, 1}
	if err := errors.Join(e.Start(), e.AddReader(sdk.ReaderInfo{ID: 0}), e.AddReader(sdk.ReaderInfo{ID: 1})); err != nil {
		t.Fatal(err)
	}
	d.finish()
	if d.failure == nil || !strings.Contains(d.failure.Error(), "parallelism is 2") {
		t.Errorf("the epoch failed with %v", d.failure)
	}
	if err := e.AddReader(sdk.ReaderInfo{ID: 2}); err == nil {
		t.Error("reader 2 of 2 was accepted")
	}
}
