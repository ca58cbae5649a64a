// Package inprocess is a network within a test: connections that a synctest bubble can wait for, and that hang, fail and break on
// demand. A backend of the conformance suite that is a server embeds a [Network] and has only Append left to write:
//
//	type system struct {
//		*inprocess.Network
//		server *myServer
//	}
//
//	func newSystem(parts int) *system {
//		s := &system{Network: inprocess.NewNetwork(), server: newServer(parts)}
//		s.Serve(s.server) // an http.Handler; for other protocols accept from s.Listener()
//		return s
//	}
//
// The source dials with [Network.Dial], an HTTP client with [Network.Client]. Outside of a bubble [Network.Forward] leads to a server in another
// process, which then hangs and fails as well.
package inprocess
