package protocol

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ChunkSplits cuts splits, in their order, into runs that each fit one AddSplits command whose payload may have
// maxPayload bytes. The runs share memory with splits. A split that does not fit alone is an error that names it.
func ChunkSplits(splits []Split, maxPayload int) ([][]Split, error) {
	var chunks [][]Split
	from, size := 0, 0
	for i := range splits {
		n := splitSize(&splits[i])
		if n > maxPayload {
			return nil, fmt.Errorf("split %q: encoded to %d bytes, a command holds %d: the connector has to make smaller splits, or the command payload limit to grow",
				splits[i].ID, n, maxPayload)
		}
		if size+n > maxPayload || i-from == maxPayloadElements {
			chunks = append(chunks, splits[from:i:i])
			from, size = i, 0
		}
		size += n
	}
	if from < len(splits) {
		chunks = append(chunks, splits[from:len(splits):len(splits)])
	}
	return chunks, nil
}

// splitSize is what a split adds to an encoded AddSplits payload.
func splitSize(s *Split) int {
	n := 0
	if len(s.ID) > 0 {
		n += protowire.SizeTag(1) + protowire.SizeBytes(len(s.ID))
	}
	if s.Data.Version != 0 {
		n += protowire.SizeTag(2) + protowire.SizeVarint(uint64(s.Data.Version))
	}
	if len(s.Data.Data) > 0 {
		n += protowire.SizeTag(3) + protowire.SizeBytes(len(s.Data.Data))
	}
	return protowire.SizeTag(1) + protowire.SizeBytes(n)
}
