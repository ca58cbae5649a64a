package engine

import (
	"github.com/penstock-dev/penstock/runtime/coordinator"
	"github.com/penstock-dev/penstock/runtime/protocol"
	"github.com/penstock-dev/penstock/runtime/reader"
	"github.com/penstock-dev/penstock/runtime/seam"
	"github.com/penstock-dev/penstock/sdk"
)

// toReader is how the coordinator reaches a reader: directly, unless a test stands in between.
func (j *job) toReader(r *region) coordinator.Mailbox {
	box := r.reader.Mailbox()
	if s := j.cfg.Seams; s != nil && s.Offer != nil {
		return offerSeam{r.id, box, s}
	}
	return box
}

// toCoordinator is how readers reach the coordinator.
func (j *job) toCoordinator() reader.Coordinator {
	if s := j.cfg.Seams; s != nil && s.Tell != nil {
		return tellSeam{&j.port, s}
	}
	return &j.port
}

type offerSeam struct {
	id    sdk.ReaderID
	box   coordinator.Mailbox
	seams *seam.Seams
}

func (o offerSeam) Offer(e *protocol.Envelope) protocol.Ack {
	return o.seams.Offer(o.id, e, o.box.Offer)
}

type tellSeam struct {
	port  *coordinator.Port
	seams *seam.Seams
}

var _ reader.Coordinator = tellSeam{}

func (t tellSeam) Registered(id sdk.ReaderID, attempt protocol.Attempt, epoch protocol.Epoch, answer reader.Registration) {
	t.seams.Tell(id, seam.Registered, func() { t.port.Registered(id, attempt, epoch, answer) })
}

func (t tellSeam) Applied(id sdk.ReaderID, attempt protocol.Attempt, mark protocol.Watermark) {
	t.seams.Tell(id, seam.Watermark, func() { t.port.Applied(id, attempt, mark) })
}

func (t tellSeam) RequestSplit(id sdk.ReaderID, attempt protocol.Attempt) {
	t.seams.Tell(id, seam.SplitRequest, func() { t.port.RequestSplit(id, attempt) })
}

// Event promises nothing, so it may say that a message is on its way which then does not arrive.
func (t tellSeam) Event(id sdk.ReaderID, attempt protocol.Attempt, event sdk.Event) bool {
	t.seams.Tell(id, seam.Event, func() { t.port.Event(id, attempt, event) })
	return true
}
