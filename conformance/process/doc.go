// Package process runs programs for tests: servers, and whatever else has to be killed, frozen or outlived.
//
//	p, err := process.Start(process.Command{Program: java, Args: args, Dir: dir, Log: dir + "/server.log"})
//	...
//	defer p.End() // kills it and returns when it is gone
//
// A program gets a process group of its own, so that a signal reaches whatever it started as well, and its output is appended
// to a file. [Process.Exited] tells when it has ended, and [Process.Err] how.
//
// # What it leaves behind
//
// Nothing: on Linux a program dies with the process that started it, however that ends. On the other Unix systems one that
// was not ended survives a kill -9 of its test. Elsewhere nothing can be started, and [Supported] says so.
//
// # Sharing what takes long to make
//
// Test binaries run at the same time. [Lock] lets one of them download or build what all need, while the others wait.
package process
