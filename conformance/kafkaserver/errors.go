package kafkaserver

import "fmt"

// UnavailableError says why no server can be had here, as opposed to one that fails. Tests skip on it.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return "kafkaserver: no server here: " + e.Reason }

// NodeError is what went wrong with one node, with the end of its log.
type NodeError struct {
	Node    int
	LogPath string
	LogTail string
	Err     error
}

func (e *NodeError) Error() string {
	return fmt.Sprintf("kafkaserver: node %d: %v: its log %s ends with\n%s", e.Node, e.Err, e.LogPath, e.LogTail)
}

// Unwrap returns the cause.
func (e *NodeError) Unwrap() error { return e.Err }
