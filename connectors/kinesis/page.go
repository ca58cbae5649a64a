package kinesis

import (
	"sort"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

// opener turns what the service stored into elements.
type opener struct {
	aggregated bool
	filter     bool // by hash keys
}

// opened is a page as elements.
type opened struct {
	elements []element
	bytes    int64
	last     lineage.Position // behind the last stored record; Unresolved for a page without one
	dropped  int64            // aggregates that another shard's hash keys were in
	broken   int64            // what looks like an aggregate and is none
}

// open makes the elements of a page that was fetched from a place. A place in the middle of an aggregate is read from its beginning, and
// the parts that were read before are left out.
func (o opener) open(records []types.Record, from lineage.Position, hashes lineage.HashRange) opened {
	var out opened
	var last element
	out.elements = make([]element, 0, len(records))
	for i := range records {
		r := &records[i]
		if r.SequenceNumber == nil {
			continue // a record without its place cannot be read on from; the service always gives one
		}
		out.bytes += int64(len(r.Data))
		if r.PartitionKey != nil {
			out.bytes += int64(len(*r.PartitionKey))
		}
		before := len(out.elements)
		o.openOne(&out, r, hashes)
		if from.Sub != lineage.Whole && from.Kind == lineage.AfterSequence && *r.SequenceNumber == from.Sequence {
			out.elements = append(out.elements[:before], unread(out.elements[before:], from.Sub)...)
		}
		last = element{stored: r}
		if len(out.elements) == before { // an empty aggregate, or all of it dropped: the position moves all the same
			out.elements = append(out.elements, element{move: &move{to: last.position()}})
		}
	}
	if last.stored != nil {
		out.last = last.position()
	}
	return out
}

// openOne appends the elements of one record.
func (o opener) openOne(out *opened, r *types.Record, hashes lineage.HashRange) {
	if !o.aggregated {
		out.elements = append(out.elements, element{stored: r})
		return
	}
	parts, found := disaggregate(r.Data)
	switch {
	case found == notAggregated:
		out.elements = append(out.elements, element{stored: r})
		return
	case found == damaged:
		out.broken++
		out.elements = append(out.elements, element{stored: r})
		return
	case o.filter && hashes.Known && !within(parts, hashes):
		out.dropped++
		return
	}
	for i := range parts {
		out.elements = append(out.elements, element{stored: r, part: &parts[i]})
	}
}

// unread are the elements behind a part.
func unread(parts []element, sub int64) []element {
	n := sort.Search(len(parts), func(i int) bool { return parts[i].sub() > sub })
	return parts[n:]
}

// until cuts a page at the first record that arrived at the stop or later, and says whether there was one.
func until(elements []element, stop int64) ([]element, bool) {
	if stop == 0 {
		return elements, false
	}
	for i := range elements {
		at := elements[i].stored
		if at != nil && at.ApproximateArrivalTimestamp != nil && at.ApproximateArrivalTimestamp.UnixMilli() >= stop {
			return elements[:i], true
		}
	}
	return elements, false
}
