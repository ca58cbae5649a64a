package catalog

import (
	"math"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/fake"
	"github.com/penstock-dev/penstock/runtime/connector"
)

func fakeSource() Source {
	return Source{
		Name: "fake", Summary: "Makes records from a seed, for trying out sinks and for tests.", Guarantee: "exactly once with a transactional sink",
		New: func() (option.Group, func() (Built, error)) {
			c := fake.Config{Splits: 1, RecordSize: fake.DefaultRecordSize, ChunkSize: fake.DefaultChunkSize}
			seed := int64(0)
			full := func() fake.Config {
				c.Seed = uint64(seed)
				return c
			}
			g := option.Group{Options: []*option.Option{
				option.Int("seed", &seed, 0, math.MaxInt64, "Makes another sequence of keys and values."),
				option.Int("splits", &c.Splits, 1, fake.MaxSplits, "Number of splits, each with its own records."),
				option.Int("records_per_split", &c.RecordsPerSplit, 0, math.MaxInt64, "Ends each split; 0 is endless.").Shown("0 (endless)"),
				option.Size("record_size", &c.RecordSize, 1, fake.MaxRecordSize, "Length of a value."),
				option.Int("key_count", &c.KeyCount, 0, math.MaxInt32, "Number of different keys; 0 is records without a key."),
				option.Number("records_per_second", &c.RecordsPerSecond, 0, "Limit of each reader; 0 is no limit."),
				option.Int("chunk_size", &c.ChunkSize, 1, fake.MaxChunkSize, "Records that a fetch brings at most."),
				option.Flag("copied", &c.Copied, "Hand over each record by itself, as a source without views of its data does; it costs more."),
			}, Check: func(ck *option.Checker) { ck.Report(full().Validate()) }}
			return g, func() (Built, error) {
				s, err := fake.New(full())
				if err != nil {
					return Built{}, err
				}
				return Built{Source: connector.Erase(s), Bounded: c.RecordsPerSplit > 0}, nil
			}
		},
	}
}
