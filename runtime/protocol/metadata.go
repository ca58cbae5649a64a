package protocol

// MetadataVersion is the version of [Metadata] that this build writes. Every published version stays readable.
const MetadataVersion = 1

// ManagedLaneVersion is the version of the managed lane's semantics.
const ManagedLaneVersion = 1

// Watermark is what one reader attempt has applied of one sender epoch: every sequence up to Applied but those in Gaps.
type Watermark struct {
	Epoch   Epoch
	Applied Sequence
	Gaps    []Sequence // ascending, bounded by [MaxGaps]
}

// MaxGaps bounds the sequences between the lowest unapplied and the highest applied one of a sender epoch.
const MaxGaps = 1024

// Metadata is what the engine adds to a reader's part of a checkpoint.
type Metadata struct {
	MetadataVersion        uint32
	CommandProtocolVersion uint32
	ManagedLaneVersion     uint32
	Lineage                []Attempt // attempts of this reader since the last restore of the job, newest last, at most 16
	Watermarks             []Watermark
	NoMoreSplitsGeneration uint64
	CapabilityDigest       string
}
