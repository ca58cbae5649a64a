package checkpoint

import (
	"bytes"
	"encoding/binary"
)

// DecodeFile is the file decoder, for fuzzing.
var DecodeFile = decodeFile

// Reseal gives a checkpoint file another format version and a checksum that fits.
func Reseal(file []byte, version uint16) []byte {
	file = bytes.Clone(file)
	binary.LittleEndian.PutUint16(file[8:], version)
	sum := fileSum(file)
	copy(file[sumOffset:], sum[:])
	return file
}
