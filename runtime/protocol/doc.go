// Package protocol holds the versioned formats of the engine: command envelope, admission ack, checkpoint metadata and
// manifest.
package protocol
