package realtest

import (
	"os"
	"testing"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

func TestMain(m *testing.M) { os.Exit(kafkaserver.Main(m)) }
