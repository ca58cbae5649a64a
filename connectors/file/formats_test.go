package file

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

// What this sink has published stays readable.
const (
	manifestV1 = `{"version":1,"job":"orders","task":3,"attempt":17,"checkpoint":42,"files":[{"hidden":".penstock-orders-t003-a17-0004.part","final":"orders-00000042-t003-0000.jsonl","size":123}]}`
	noteV1     = `{"version":1,"checkpoint":42,"attempt":17,"hidden":[".penstock-orders-t003-a17-0004.part"]}`
)

func TestManifestOfAnotherVersionOrJob(t *testing.T) {
	w := newRig(t).writer(0, 1)
	for _, s := range []string{
		``, `{`, `{"version":2}`, `{"version":1,"job":"other"}`, `{"version":1,"job":"orders","extra":1}`,
		`{"version":1,"job":"orders","files":[{"hidden":"../x","final":"y","size":1}]}`,
		`{"version":1,"job":"orders","files":[{"hidden":".penstock-orders-t000-a1-0000.part","final":"../y","size":1}]}`,
		`{"version":1,"job":"orders","files":[{"hidden":".penstock-orders-t000-a1-0000.part","final":".y","size":1}]}`,
	} {
		if err := w.Commit(t.Context(), []byte(s)); !errors.Is(err, ErrManifest) || !errors.Is(err, sdk.ErrFatal) {
			t.Errorf("%s: got %v", s, err)
		}
	}
	if _, err := decodeManifest([]byte(`{"version":2}`), "orders"); !isUnknownVersion(err) {
		t.Errorf("got %v", err)
	}
}

func isUnknownVersion(err error) bool {
	_, ok := errors.AsType[*sdk.UnknownVersionError](err)
	return ok
}

func TestManifestGolden(t *testing.T) {
	m, err := decodeManifest([]byte(manifestV1), "orders")
	must(t, err)
	got, err := m.encode()
	must(t, err)
	if string(got) != manifestV1 || m.Files[0].Size != 123 || m.Checkpoint != 42 {
		t.Errorf("got %s", got)
	}
}

func TestNoteGolden(t *testing.T) {
	n, err := decodeNote([]byte(noteV1))
	must(t, err)
	got, err := json.Marshal(n)
	must(t, err)
	if string(got) != noteV1 || n.Checkpoint != 42 || n.Attempt != 17 || len(n.Hidden) != 1 {
		t.Errorf("got %s", got)
	}
	if _, err := decodeNote([]byte(`{"version":2}`)); !isUnknownVersion(err) {
		t.Errorf("got %v", err)
	}
}

// A manifest that is taken names only hidden files of its job, and names that stay in the folder.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifestV1))
	f.Add([]byte(`{"version":1,"job":"orders","files":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data, "orders")
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Fatal(err)
			}
			return
		}
		for _, p := range m.Files {
			for _, name := range []string{p.Hidden, p.Final} {
				if filepath.Join("out", name) != filepath.Join("out", filepath.Base(name)) || name == "." || name == ".." {
					t.Fatalf("%q leaves the folder", name)
				}
			}
			if p.Final[0] == '.' || !isPart(p.Hidden, "orders") {
				t.Fatalf("%q becomes %q", p.Hidden, p.Final)
			}
		}
		again, err := m.encode()
		must(t, err)
		if _, err := decodeManifest(again, "orders"); err != nil {
			t.Fatalf("%s was read and is written as %s: %v", data, again, err)
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add([]byte(noteV1))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := decodeNote(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(n)
		must(t, err)
		m, err := decodeNote(again)
		if err != nil || m.Checkpoint != n.Checkpoint || m.Attempt != n.Attempt || len(m.Hidden) != len(n.Hidden) {
			t.Fatalf("%s was read and is written as %s: %v", data, again, err)
		}
	})
}
