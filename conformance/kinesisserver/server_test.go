package kinesisserver_test

import (
	"errors"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
)

func TestAServerIsGoneAfterClose(t *testing.T) {
	t.Parallel()
	if !kinesisserver.Shared(t).Owned() {
		t.Skip("SKIPPED: the server is not ours")
	}
	srv, err := kinesisserver.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := srv.Client()
	if _, err := client.ListStreams(t.Context(), &kinesis.ListStreamsInput{}); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.ListStreams(t.Context(), &kinesis.ListStreamsInput{}); err == nil {
		t.Error("it still answers")
	}
}

func TestWithoutNodeTheServerIsUnavailable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := kinesisserver.New(t.Context())
	if _, ok := errors.AsType[*kinesisserver.UnavailableError](err); !ok {
		t.Errorf("%v", err)
	}
}

func TestAnotherServerIsUsedWhenTheEnvironmentNamesOne(t *testing.T) {
	if os.Getenv(kinesisserver.Switch) == "off" || testing.Short() {
		t.Skip("SKIPPED: servers are off")
	}
	t.Setenv(kinesisserver.External, "127.0.0.1:1")
	srv := kinesisserver.Shared(t)
	if srv.Owned() || srv.Endpoint() != "http://127.0.0.1:1" {
		t.Errorf("%s, ours: %t", srv.Endpoint(), srv.Owned())
	}
}
