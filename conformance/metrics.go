package conformance

import (
	"slices"

	"github.com/penstock-dev/penstock/sdk"
)

func metricsScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"metrics/are_there":                          metricsAreThere[S, B],
		"metrics/are_bounded":                        metricsAreBounded[S, B],
		"metrics/events_are_declared_and_not_needed": eventsAreNotNeeded[S, B],
	}
}

// measured reads a few records and answers the instruments of the reader and the enumerator.
func (x *trial[S, B]) measured(parts int) (reader, enumerator *meters) {
	x.start(parts)
	source := x.h.Source(x.b)
	c := x.coordinates(source, 1, nil)
	c.start()
	c.register(sdk.ReaderInfo{})
	splits := c.all(parts)
	l := x.reads(source, splits...)
	for p := range parts {
		x.append(p, 2)
	}
	l.takeAll()
	l.close()
	c.close()
	x.end()
	return l.ctx.metrics, c.metrics
}

func metricsAreThere[S sdk.Split, B Backend](x *trial[S, B]) {
	reader, enumerator := x.measured(2)
	for who, m := range map[string]*meters{"reader": reader, "enumerator": enumerator} {
		if !m.moved() {
			x.fail("no instrument of the %s has moved; it has %v", who, m.names())
		}
		for _, wrong := range m.problems() {
			x.fail("an instrument of the %s: %s", who, wrong)
		}
	}
}

func metricsAreBounded[S sdk.Split, B Backend](x *trial[S, B]) {
	x.needs(9)
	const most = 64
	reader, enumerator := x.measured(1)
	manyReader, manyEnumerator := x.measured(9)
	for who, m := range map[string][2]*meters{"reader": {reader, manyReader}, "enumerator": {enumerator, manyEnumerator}} {
		few, many := m[0].names(), m[1].names()
		if !slices.Equal(few, many) {
			x.fail("with one split the %s has the instruments %v, with nine %v", who, few, many)
		}
		if len(many) > most {
			x.fail("the %s has %d instruments, more than %d", who, len(many), most)
		}
	}
}

func eventsAreNotNeeded[S sdk.Split, B Backend](x *trial[S, B]) {
	x.start(2)
	source := x.h.Source(x.b)
	c := x.coordinates(source, 1, nil)
	c.start()
	c.register(sdk.ReaderInfo{})
	l := x.reads(source, c.all(2)...)
	x.append(0, 10)
	x.append(1, 10)
	l.takeAll()
	x.everything(l.out.texts)
	if source.Capability().SourceEvents {
		return
	}
	if n := l.ctx.sent.Load() + c.sent.Load(); n > 0 {
		x.fail("%d events were sent, and the capability does not declare SourceEvents", n)
	}
}
