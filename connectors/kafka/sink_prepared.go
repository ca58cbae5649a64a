package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/sdk"
)

// preparedVersion is what this build writes. Every published version stays readable.
const preparedVersion = 1

// prepared is what Prepare puts into a checkpoint: everything that is needed to commit a transaction without the client that
// wrote it, and to find out later whether that was done.
type prepared struct {
	Version    int              `json:"version"`
	Job        string           `json:"job"`
	Task       int              `json:"task"`
	Attempt    int64            `json:"attempt"`
	Checkpoint sdk.CheckpointID `json:"checkpoint"`

	ID         string    `json:"transactional_id"`
	ProducerID int64     `json:"producer_id"`
	Epoch      int16     `json:"producer_epoch"`
	Records    int64     `json:"records"`
	Began      time.Time `json:"began"`
	TimeoutMS  int64     `json:"timeout_ms"`
	// Places are where some of the records are, of up to maxPlaces partitions: the log there knows what became of them.
	Places []written `json:"places"`
}

// key identifies a transaction for good: no two begin with the same epoch.
type key struct {
	producerID int64
	epoch      int16
}

func (p *prepared) key() key { return key{p.ProducerID, p.Epoch} }

// written is what a transaction wrote to one partition. Producer id and epoch belong to no other transaction, because every one begins
// with a raised epoch; so a batch at First that bears them is of this one.
type written struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	First     int64  `json:"first"` // offset
	Last      int64  `json:"last"`
}

// maxPlaces bounds a prepared transaction's size. One place is enough to know, since a transaction is atomic; more of them serve
// when the log of one was compacted or deleted.
const maxPlaces = 8

func (p *prepared) encode() ([]byte, error) {
	p.Version = preparedVersion
	return json.Marshal(p)
}

func (p *prepared) timeout() time.Duration { return time.Duration(p.TimeoutMS) * time.Millisecond }

// failure makes the error about p.
func (p *prepared) failure(sentinel error, problem string) *TransactionError {
	return &TransactionError{
		TransactionalID: p.ID, Checkpoint: p.Checkpoint, Task: p.Task, Records: p.Records, Began: p.Began, Timeout: p.timeout(),
		Problem: problem, Err: sentinel,
	}
}

// decodePrepared reads a prepared transaction of this job. The id in it is checked, so that a damaged checkpoint cannot end
// the transactions of somebody else.
func (s *Sink) decodePrepared(data []byte, job string) (*prepared, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrepared, err)
	}
	if version.Version != preparedVersion {
		return nil, fmt.Errorf("%w: %w", ErrPrepared, sdk.UnknownVersion("prepared transaction of the kafka sink", version.Version, preparedVersion))
	}
	var p prepared
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrepared, err)
	}
	switch {
	case p.Job != job:
		return nil, fmt.Errorf("%w: it is of job %q, not %q", ErrPrepared, p.Job, job)
	case !isSlotID(p.ID, s.IDPrefix, job):
		return nil, fmt.Errorf("%w: %q is no transactional id of job %q with transactional_id_prefix %q: do not change that while there is saved state", ErrPrepared, p.ID, job, s.IDPrefix)
	case p.ProducerID < 0 || p.Epoch < 0 || p.Records < 0:
		return nil, fmt.Errorf("%w: %q has a negative number in it", ErrPrepared, data)
	}
	return &p, nil
}
