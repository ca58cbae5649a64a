package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

// Either as first argument makes this program serve a double of Kinesis until its standard input ends.
const (
	// kinesisCommand keeps the service's limits on calls and bytes, so that lives that are short run into them as they would there.
	kinesisCommand = "serve-kinesis"
	// volumeCommand has none, for measurements.
	volumeCommand = "serve-kinesis-unlimited"
)

func serveKinesis(o kinesistest.Options) error {
	srv, err := kinesistest.New(o)
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Println(srv.Endpoint())
	_, err = io.Copy(io.Discard, os.Stdin) // the parent's end, however it ends, ends this process too
	return err
}

// startKinesis starts the double in a process of its own, or kinesis-local, and returns the address.
func (c config) startKinesis(ctx context.Context) (endpoint string, stop func(), err error) {
	switch c.servers {
	case "", embedded:
		return startServer(ctx, c.self, kinesisCommand, nil)
	case real:
		srv, err := kinesisserver.New(ctx)
		if err != nil {
			return "", nil, err
		}
		return srv.Endpoint(), func() {
			if err := srv.Close(); err != nil {
				c.say("the emulator did not stop well: %v", err)
			}
		}, nil
	default:
		return "", nil, errors.New("-servers of -source kinesis is " + embedded + " or " + real + " (kinesis-local)")
	}
}
