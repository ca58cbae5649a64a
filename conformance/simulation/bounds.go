package simulation

import (
	"context"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-dev/penstock/runtime/exchange"
)

// checkEvery is how many checkpoints share one look at the metrics, which costs more than a checkpoint.
const checkEvery = 64

// checkBounds checks that no queue is longer than its option says.
func (l *life) checkBounds() {
	if l.looks.Add(1)%checkEvery != 1 {
		return
	}
	scopes, err := l.metrics.Produce(context.Background())
	if err != nil {
		l.violate("metrics: %v", err)
		return
	}
	o := &l.plan.Options
	inputs := 1
	if l.plan.Exchange != exchange.Forward {
		inputs = l.plan.Parallelism
	}
	limits := map[string]int64{
		"penstock.reader.mailbox.commands":          int64(o.MailboxCommands + o.ReservedCommands),
		"penstock.reader.mailbox.size":              o.MailboxBytes + o.ReservedBytes,
		"penstock.reader.mailbox.reserved.commands": int64(o.ReservedCommands),
		"penstock.reader.mailbox.reserved.size":     o.ReservedBytes,
		"penstock.process.mailbox.size":             o.ProcessMailboxBytes,
		"penstock.sink.queue.batches":               int64(o.ExchangeCredit * inputs),
		"penstock.coordinator.tracker.entries":      int64(max(o.TrackerEntries, l.world.plan.splits())), // adoption drops nothing
	}
	found := 0
	for _, m := range scopes[0].Metrics {
		limit, ok := limits[m.Name]
		if !ok {
			continue
		}
		found++
		gauge, ok := m.Data.(metricdata.Gauge[int64])
		if !ok {
			l.violate("%s is no gauge", m.Name)
			continue
		}
		for _, p := range gauge.DataPoints {
			if p.Value > limit {
				l.violate("%s is %d, the limit is %d", m.Name, p.Value, limit)
			}
		}
	}
	if found != len(limits) {
		l.violate("%d of %d bounded queues are in the metrics", found, len(limits))
	}
}
