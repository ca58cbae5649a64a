package protocol

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/penstock-dev/penstock/runtime/protocol/wire"
	"github.com/penstock-dev/penstock/sdk"
)

// MaxNameBytes bounds each name in a header or manifest: job, source, connector, sink, digest, event kind.
const MaxNameBytes = 1024

// MaxParallelism bounds reader and task numbers.
const MaxParallelism = 1 << 16

// errInvalid is what checks report. It is no contract: an encoder says what its caller did wrong, a decoder turns it into
// corrupt state.
var errInvalid = errors.New("invalid value")

func invalid(field string, value any, want string) error {
	return fmt.Errorf("%w: %s is %v, want %s", errInvalid, field, value, want)
}

// checkName accepts UTF-8 of bounded length.
func checkName(field, name string, required bool) error {
	switch {
	case required && name == "":
		return invalid(field, `""`, "a name")
	case len(name) > MaxNameBytes:
		return invalid(field, fmt.Sprintf("%d bytes long", len(name)), fmt.Sprintf("at most %d", MaxNameBytes))
	case !utf8.ValidString(name):
		return invalid(field, fmt.Sprintf("%q", name), "UTF-8")
	}
	return nil
}

func checkSplits(field string, splits []Split) error {
	for i := range splits {
		s := &splits[i]
		if n := len(s.ID); n == 0 || n > sdk.MaxSplitIDBytes {
			return invalid(fmt.Sprintf("%s[%d].ID", field, i), fmt.Sprintf("%d bytes long", n), fmt.Sprintf("1 to %d", sdk.MaxSplitIDBytes))
		}
		if err := checkVersion(field, s.Data.Version); err != nil {
			return fmt.Errorf("split %q: %w", s.ID, err)
		}
	}
	return nil
}

func checkVersion(field string, version int) error {
	if version < 0 || version > math.MaxInt32 {
		return invalid(field+".Version", version, "0 to 2147483647")
	}
	return nil
}

func checkCheckpoint(field string, id sdk.CheckpointID) error {
	if id < 1 {
		return invalid(field, id, "at least 1")
	}
	return nil
}

// narrow turns a decoded number into an enumeration of eight bits; zero, which is no member of any, stands for too large.
func narrow[T ~uint8](n uint32) T {
	if n > math.MaxUint8 {
		return 0
	}
	return T(n)
}

func splitsToWire(splits []Split) []*wire.Split {
	list := make([]*wire.Split, len(splits))
	for i := range splits {
		s := &splits[i]
		list[i] = &wire.Split{Id: []byte(s.ID), Version: uint32(s.Data.Version), Data: s.Data.Data}
	}
	return list
}

func splitsFromWire(list []*wire.Split) []Split {
	if len(list) == 0 {
		return nil
	}
	splits := make([]Split, len(list))
	for i, s := range list {
		splits[i] = Split{ID: sdk.SplitID(s.GetId()), Data: sdk.VersionedBytes{Version: int(s.GetVersion()), Data: filled(s.GetData())}}
	}
	return splits
}

func versionedToWire(v sdk.VersionedBytes) *wire.VersionedBytes {
	return &wire.VersionedBytes{Version: uint32(v.Version), Data: v.Data}
}

func versionedFromWire(v *wire.VersionedBytes) sdk.VersionedBytes {
	return sdk.VersionedBytes{Version: int(v.GetVersion()), Data: filled(v.GetData())}
}

// filled makes an empty slice nil: the format does not tell them apart.
func filled(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
