package inspect_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/inspect"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

func manifest() *protocol.Manifest {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	split := func(id string) protocol.Split { return protocol.Split{ID: sdk.SplitID(id)} }
	return &protocol.Manifest{
		Job: "orders", ID: 58, Kind: protocol.Savepoint, Triggered: at.Add(-11 * time.Millisecond), Completed: at, Parallelism: 2,
		Lane: protocol.LaneA, Connector: "kafka", ConnectorVersion: "1.0.0", CapabilityDigest: "5f2cabcdef", Sink: "file", Records: 1_301_442,
		Coordinator: protocol.CoordinatorState{Tracker: []protocol.Assignment{{Reader: 0, Splits: []protocol.Split{split("orders-4")}}}},
		Readers: []protocol.ReaderState{
			{Reader: 0, Splits: []protocol.Split{split("orders-0")}},
			{Reader: 1, Splits: []protocol.Split{split("orders-1")}, Finished: []protocol.Split{split("orders-3")}},
		},
		Sinks: []protocol.SinkState{{Prepared: []protocol.Prepared{{Checkpoint: 58, Data: []byte("abc")}}}},
	}
}

func describe(s protocol.Split) ([]sdk.Attribute, error) {
	if s.ID == "orders-1" {
		return nil, errors.New("version 9, this build reads up to 1")
	}
	return []sdk.Attribute{{Name: "topic", Value: "orders"}, {Name: "offset", Value: "321007"}, {Name: "stop", Value: "-"}, {Name: "leader epoch", Value: "4"}}, nil
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := inspect.NewView(manifest(), "state/58", 2150, describe).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`
checkpoint 58 (KIND)  2026-01-02T03:04:05Z  complete  11 ms  2.1 KiB
job orders  1,301,442 records committed to sink file
lane LANE  capability kafka 1.0.0 (digest 5f2c...)  parallelism 2
SPLIT     READER  POSITION        LEADER EPOCH  STATE
orders-0  0       offset 321,007  4             active
orders-1  1       offset -        -             active (position unknown)
orders-3  1       offset 321,007  4             finished
orders-1: version 9, this build reads up to 1
1 assignment not yet included: orders-4 -> reader 0
`[1:], "KIND", protocol.Savepoint.String())
	want = strings.ReplaceAll(want, "LANE", protocol.LaneA.String())
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnknownConnectorAndNoSplits(t *testing.T) {
	m := manifest()
	v := inspect.NewView(m, "f", 1, nil)
	if v.Splits[0].Problem == "" || v.Prepared != 3 {
		t.Errorf("got %+v", v)
	}
	m.Readers, m.Coordinator.Tracker = nil, nil
	var out strings.Builder
	if err := inspect.NewView(m, "f", 1, nil).WriteTable(&out); err != nil || !strings.HasSuffix(out.String(), "\nno splits\n") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	b, err := json.Marshal(inspect.NewView(m, "f", 1, nil))
	if err != nil || !strings.Contains(string(b), `"splits":[],"assignments":[]`) {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestLineageIsPrintedAsATree(t *testing.T) {
	m := manifest()
	v := inspect.NewView(m, "f", 1, nil)
	v.AddLineage(m, func(_ sdk.VersionedBytes, finished []sdk.SplitID) ([]inspect.Descent, error) {
		if len(finished) != 1 || finished[0] != "orders-3" {
			t.Errorf("finished: %v", finished)
		}
		return []inspect.Descent{
			{Split: "a", State: "completed"},
			{Split: "b", Parents: []string{"a"}, State: "completed"},
			{Split: "c", Parents: []string{"a"}, State: "draining"},
			{Split: "d", Parents: []string{"b", "c"}, State: "pending parent", Notes: []string{"from trim horizon"}},
			{Split: "e", Parents: []string{"gone"}, State: "active"},
		}, nil
	})
	var out strings.Builder
	if err := v.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := `
LINEAGE
a  completed
├─ b  completed
│  └─ d  pending parent, from trim horizon, also of c
└─ c  draining
e  active
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	v.AddLineage(m, func(sdk.VersionedBytes, []sdk.SplitID) ([]inspect.Descent, error) {
		return nil, errors.New("version 9")
	})
	out.Reset()
	if err := v.WriteTable(&out); err != nil || !strings.HasSuffix(out.String(), "lineage: version 9\n") {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
