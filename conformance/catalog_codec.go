package conformance

// codecCatalog is about encoded splits.
var codecCatalog = []Case{
	{
		Name:        "codec/round_trip",
		Purpose:     "A split that is not what it was after a restart is read from another place.",
		Requirement: "Decode answers what Encode was given: the same id and, encoded again, the same bytes. Codecs may be used by many goroutines and keep no reference to what they are given.",
		Pass:        "splits at their start and from snapshots survive a round trip, also on many goroutines at once, and also when the bytes are overwritten afterwards; after each of 20 records the bytes are others",
		Cause:       "a field that is not encoded (unexported, in JSON), or a map that is encoded in random order.",
		Look:        "the codec and the fields of the split",
	},
	{
		Name:        "codec/published_versions",
		Purpose:     "Checkpoints of every published version must stay readable, or an upgrade loses the position of every job.",
		Requirement: "Every version from 1 to Version has a file with an encoded split, which is kept for ever; it decodes, and the present version encodes to the same bytes.",
		Pass:        "each file is there and decodes, and that of the present version is what Encode writes",
		Cause:       "the encoding has changed without a new version.",
		Look:        "the codec: once released, raise its version and keep reading the old one; before that, delete the file, and run with PENSTOCK_GOLDEN=write",
	},
	{
		Name:        "codec/unknown_version",
		Purpose:     "After a downgrade, state that is misread is silent loss.",
		Requirement: "Decode of a version that this build does not know is an error made with sdk.UnknownVersion.",
		Pass:        "versions 0, -1, one more than the present one, and a very large one are told as an sdk.UnknownVersionError",
		Cause:       "the version is ignored.",
		Look:        "the first lines of Decode",
	},
	{
		Name:        "codec/truncated_or_longer",
		Purpose:     "A torn file must stop a job, not move its position.",
		Requirement: "Bytes that do not parse, or are left over, are an error that wraps sdk.ErrCorrupt.",
		Pass:        "each proper prefix of an encoded split, and each split with bytes behind it, is told as sdk.ErrCorrupt",
		Cause:       "a missing field is taken for zero, or the rest of the bytes is not looked at.",
		Look:        "Decode: check the length of each field, and that nothing is left",
	},
	{
		Name:        "codec/damaged_bytes",
		Purpose:     "A restore that panics takes the process with it, and one that allocates what a damaged length says takes the machine.",
		Requirement: "Decode never panics, whatever the bytes; what it accepts can be encoded and decoded again.",
		Pass:        "for 20,000 damaged encodings Decode answers sdk.ErrCorrupt or a split that survives a round trip",
		Cause:       "an index or an allocation from a length that was not checked.",
		Look:        "Decode, and a fuzz test of it",
	},
}

// metricsCatalog is about instruments and events.
var metricsCatalog = []Case{
	{
		Name:        "metrics/are_there",
		Purpose:     "Without metrics nobody sees that a reader is slow, or why.",
		Requirement: "Readers and enumerators count what they do with sdk.Metrics; base.Reader and base.Enumerator do.",
		Pass:        "after reading, at least one instrument of the reader and one of the enumerator has moved; names are legal, and have help and one unit",
		Cause:       "instruments are made and never touched.",
		Look:        "where ReaderContext.Metrics and EnumeratorContext.Metrics are used",
	},
	{
		Name:        "metrics/are_bounded",
		Purpose:     "A series for each split, topic or error fills the memory of a process and of what collects from it.",
		Requirement: "Names do not depend on splits or data, and there are no labels.",
		Pass:        "a reader and an enumerator with one split and with nine ask for the same names, at most 64",
		Cause:       "the name of an instrument is put together with fmt.Sprintf.",
		Look:        "the calls of Counter and Gauge",
	},
	{
		Name:        "metrics/events_are_declared_and_not_needed",
		Purpose:     "Events between reader and enumerator are lost in a failover; what depends on one arriving hangs.",
		Requirement: "A source that sends events declares SourceEvents, and nothing depends on the arrival of one that is not also reconstructed at registration.",
		Pass:        "without SourceEvents no event is sent; with it everything is read although all of them are lost",
		Cause:       "SendEvent carries something that a checkpoint should.",
		Look:        "the callers of SendEvent, and the capability",
	},
}
