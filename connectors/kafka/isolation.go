package kafka

import "github.com/twmb/franz-go/pkg/kgo"

// Isolation says which records of transactions are read.
type Isolation uint8

const (
	// ReadCommitted reads records of committed transactions and records written without one. Reading stops before the first open
	// transaction. The default.
	ReadCommitted Isolation = iota
	// ReadUncommitted reads every record, also of aborted transactions.
	ReadUncommitted
)

// String returns the name used in job files.
func (i Isolation) String() string {
	switch i {
	case ReadCommitted:
		return "read_committed"
	case ReadUncommitted:
		return "read_uncommitted"
	default:
		return "isolation(?)"
	}
}

// level is the isolation in requests.
func (i Isolation) level() int8 {
	if i == ReadUncommitted {
		return 0
	}
	return 1
}

func (i Isolation) fetchLevel() kgo.IsolationLevel {
	if i == ReadUncommitted {
		return kgo.ReadUncommitted()
	}
	return kgo.ReadCommitted()
}
