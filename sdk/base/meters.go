package base

import "github.com/penstock-dev/penstock/sdk"

// meters are the base reader's instruments, touched once per fetch.
type meters struct {
	fetches, empty, elements, bytes sdk.Counter
}

func newMeters(m sdk.Metrics) meters {
	return meters{
		fetches:  m.Counter("fetches", "{fetch}", "Fetches that returned, empty ones included."),
		empty:    m.Counter("fetches_empty", "{fetch}", "Fetches that brought no element."),
		elements: m.Counter("fetched_elements", "{element}", "Elements that were fetched, before filtering and fan-out."),
		bytes:    m.Counter("fetched_bytes", "By", "Payload bytes that were fetched, as estimated by the connector."),
	}
}

func (m *meters) fetched(size int64, elements int) {
	m.fetches.Add(1)
	if elements == 0 {
		m.empty.Add(1)
		return
	}
	m.elements.Add(int64(elements))
	m.bytes.Add(size)
}
