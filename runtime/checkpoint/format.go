package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/sdk"
)

// FormatVersion is the version of the checkpoint file that this build writes. Every published version stays readable. The
// manifest in it has a version of its own.
const FormatVersion = 1

const (
	fileMagic   = "PENSTOCK"
	sumOffset   = 24
	headerBytes = sumOffset + sha256.Size
)

// encodeFile returns the checkpoint file of a manifest.
func encodeFile(m *protocol.Manifest) ([]byte, error) {
	body, err := m.Encode()
	if err != nil {
		return nil, err
	}
	file := make([]byte, headerBytes, headerBytes+len(body))
	copy(file, fileMagic)
	binary.LittleEndian.PutUint16(file[8:], FormatVersion)
	binary.LittleEndian.PutUint64(file[16:], uint64(len(body)))
	file = append(file, body...)
	if len(file) > MaxFileBytes {
		return nil, fmt.Errorf("checkpoint %d has %d bytes, a file may have %d", m.ID, len(file), MaxFileBytes)
	}
	sum := fileSum(file)
	copy(file[sumOffset:], sum[:])
	return file, nil
}

// fileSum covers everything but the sum itself.
func fileSum(file []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(file[:sumOffset])
	h.Write(file[headerBytes:])
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// decodeFile is the reverse of encodeFile. The error says what is wrong with anything that is not [Usable].
func decodeFile(b []byte) (*protocol.Manifest, FileState, error) {
	body, state, err := openFile(b)
	if err != nil {
		return nil, state, err
	}
	m, err := protocol.DecodeManifest(body)
	if err != nil {
		return nil, stateOf(err), err
	}
	return m, Usable, nil
}

// openFile checks the header and returns the body.
func openFile(b []byte) ([]byte, FileState, error) {
	prefix := b[:min(len(b), len(fileMagic))]
	switch {
	case len(b) == 0:
		return nil, Truncated, fmt.Errorf("%w: it is empty", sdk.ErrCorrupt)
	case !bytes.HasPrefix([]byte(fileMagic), prefix):
		return nil, NotCheckpoint, fmt.Errorf("%w: it does not begin with %q", sdk.ErrCorrupt, fileMagic)
	case len(b) < headerBytes:
		return nil, Truncated, fmt.Errorf("%w: it has %d bytes, its header alone has %d", sdk.ErrCorrupt, len(b), headerBytes)
	}
	length, have := binary.LittleEndian.Uint64(b[16:]), uint64(len(b)-headerBytes)
	switch {
	case have < length:
		return nil, Truncated, fmt.Errorf("%w: its body has %d of %d bytes", sdk.ErrCorrupt, have, length)
	case have > length:
		return nil, Corrupt, fmt.Errorf("%w: %d bytes follow its end", sdk.ErrCorrupt, have-length)
	}
	if sum := fileSum(b); !bytes.Equal(sum[:], b[sumOffset:headerBytes]) {
		return nil, Corrupt, fmt.Errorf("%w: its checksum does not match", sdk.ErrCorrupt)
	}
	switch version := binary.LittleEndian.Uint16(b[8:]); {
	case version == 0:
		return nil, Corrupt, fmt.Errorf("%w: format version 0 was never written", sdk.ErrCorrupt)
	case version > FormatVersion:
		return nil, NewerVersion, sdk.UnknownVersion("checkpoint file", int(version), FormatVersion)
	}
	return b[headerBytes:], Usable, nil
}

// stateOf classifies what a decoder said.
func stateOf(err error) FileState {
	if _, newer := errors.AsType[*sdk.UnknownVersionError](err); newer {
		return NewerVersion
	}
	return Corrupt
}

const (
	checkpointPrefix = "chk-"
	savepointPrefix  = "savepoint-"
	fileSuffix       = ".ckpt"
	tempSuffix       = ".tmp"
)

// fileName names the file of a checkpoint. Numbers of more than eight digits make longer names.
func fileName(id sdk.CheckpointID, savepoint bool) string {
	prefix := checkpointPrefix
	if savepoint {
		prefix = savepointPrefix
	}
	return fmt.Sprintf("%s%08d%s", prefix, id, fileSuffix)
}

// tempName is what a file is called until it is complete. Nothing that begins with a dot is ever read.
func tempName(name string) string { return "." + name + tempSuffix }

// fileNames finds the names that fileName makes, possibly wrapped by tempName.
var fileNames = regexp.MustCompile(`^(\.?)(chk-|savepoint-)([0-9]{8,18})\.ckpt(\.tmp)?$`)

// parseName is the reverse of fileName and tempName. ok is false for every other name.
func parseName(name string) (id sdk.CheckpointID, isSavepoint, temporary, ok bool) {
	parts := fileNames.FindStringSubmatch(name)
	if parts == nil || (parts[1] == "") != (parts[4] == "") {
		return 0, false, false, false
	}
	n, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || n < 1 {
		return 0, false, false, false
	}
	id, isSavepoint, temporary = sdk.CheckpointID(n), parts[2] == savepointPrefix, parts[1] != ""
	plain := fileName(id, isSavepoint)
	return id, isSavepoint, temporary, name == plain || temporary && name == tempName(plain)
}
