package kinesis

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-dev/penstock/conformance/kinesisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withServer{m}) }

// withServer closes the emulator that tests share, before what is left running is looked for.
type withServer struct{ m *testing.M }

func (w withServer) Run() int { return kinesisserver.Main(w.m) }
