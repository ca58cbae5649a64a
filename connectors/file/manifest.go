package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/penstock-dev/penstock/sdk"
)

// manifestVersion is what this build writes. Every published version stays readable.
const manifestVersion = 1

// manifest is what Prepare puts into a checkpoint: the prepared files of one task and the names they get.
type manifest struct {
	Version    int              `json:"version"`
	Job        string           `json:"job"`
	Task       int              `json:"task"`
	Attempt    int64            `json:"attempt"`
	Checkpoint sdk.CheckpointID `json:"checkpoint"`
	Files      []prepared       `json:"files"`
}

// prepared is one file: complete, durable, invisible.
type prepared struct {
	Hidden string `json:"hidden"`
	Final  string `json:"final"`
	Size   int64  `json:"size"` // on disk
}

func (m *manifest) encode() ([]byte, error) { return json.Marshal(m) }

// decodeManifest reads a manifest of this job. The names in it are checked, so that a damaged checkpoint cannot rename
// or remove anything but hidden files of the job.
func decodeManifest(data []byte, job string) (*manifest, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("file sink: %w: %w", ErrManifest, err)
	}
	if version.Version != manifestVersion {
		return nil, fmt.Errorf("file sink: %w: %w", ErrManifest, sdk.UnknownVersion("file sink manifest", version.Version, manifestVersion))
	}
	m := new(manifest)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("file sink: %w: %w", ErrManifest, err)
	}
	if m.Job != job {
		return nil, fmt.Errorf("file sink: %w: it belongs to job %q, this is job %q", ErrManifest, m.Job, job)
	}
	for _, f := range m.Files {
		if !isPart(f.Hidden, job) || filepath.Base(f.Hidden) != f.Hidden {
			return nil, fmt.Errorf("file sink: %w: %q is no hidden file of job %q", ErrManifest, f.Hidden, job)
		}
		if f.Final == "" || f.Final[0] == '.' || filepath.Base(f.Final) != f.Final {
			return nil, fmt.Errorf("file sink: %w: %q is no file name", ErrManifest, f.Final)
		}
	}
	return m, nil
}
