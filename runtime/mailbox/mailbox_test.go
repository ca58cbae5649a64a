package mailbox

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/penstock-dev/penstock/runtime/protocol"
)

// command makes a valid envelope with a payload of the given size. Admission never decodes it, so it may be anything.
func command(kind protocol.CommandKind, epoch protocol.Epoch, target protocol.Attempt, seq protocol.Sequence, size int) *protocol.Envelope {
	payload := []byte(strings.Repeat("x", size))
	return &protocol.Envelope{
		ProtocolVersion: protocol.Version, Job: "job", SourceRuntime: "fake", Epoch: epoch, Sender: protocol.Attempt(epoch), Target: target,
		Sequence: seq, Command: uint64(seq), Kind: kind, Durability: protocol.DurabilityOf(kind), PayloadVersion: protocol.PayloadVersion,
		PayloadChecksum: protocol.Checksum(payload), Payload: payload,
	}
}

// script is one mailbox, or two that share a budget, under a datadriven script.
type script struct {
	budget *Budget
	boxes  map[string]*Mailbox
	rings  int
	now    time.Time
	kinds  map[string]protocol.CommandKind
}

func newScript() *script {
	s := &script{boxes: map[string]*Mailbox{}, now: time.Unix(1000, 0), kinds: map[string]protocol.CommandKind{}}
	for _, k := range protocol.Kinds() {
		s.kinds[k.String()] = k
	}
	return s
}

// TestMailboxScripts: `new` makes a mailbox, `do` runs a line per command:
//
//	offer [kind=K] [epoch=N] [target=N] seq=N [size=N] [break=version|payload-version|durability|sender|checksum|job]
//	take | takes | close | stats
func TestMailboxScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/mailbox", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			name := "main"
			d.MaybeScanArgs(t, "box", &name)
			switch d.Cmd {
			case "new":
				return s.create(t, d, name)
			case "do":
				var out strings.Builder
				for line := range strings.Lines(d.Input) {
					s.line(t, &out, s.boxes[name], strings.Fields(line))
				}
				return out.String()
			default:
				t.Fatalf("unknown command %s", d.Cmd)
				return ""
			}
		})
	})
}

func (s *script) create(t *testing.T, d *datadriven.TestData, name string) string {
	l := Limits{Commands: 4, Bytes: 100, ReservedCommands: 2, ReservedBytes: 20, PayloadBytes: 60, RetryAfter: 10 * time.Millisecond}
	process := int64(1000)
	d.MaybeScanArgs(t, "commands", &l.Commands)
	d.MaybeScanArgs(t, "bytes", &l.Bytes)
	d.MaybeScanArgs(t, "payload", &l.PayloadBytes)
	d.MaybeScanArgs(t, "process", &process)
	if s.budget == nil {
		s.budget = NewBudget(process)
	}
	s.boxes[name] = New(7, l, s.budget, func() time.Time { return s.now }, func() { s.rings++ })
	return "ok\n"
}

func (s *script) line(t *testing.T, out io.Writer, m *Mailbox, f []string) {
	s.now = s.now.Add(time.Second)
	switch f[0] {
	case "offer":
		fmt.Fprintf(out, "%s: %s\n", strings.Join(f[1:], " "), s.offer(t, m, f[1:]))
	case "take":
		fmt.Fprintln(out, s.take(m))
	case "takes":
		for {
			line := s.take(m)
			if line == "take: empty" {
				return
			}
			fmt.Fprintln(out, line)
		}
	case "close":
		m.Close()
		fmt.Fprintln(out, "closed")
	case "stats":
		st := m.Stats()
		fmt.Fprintf(out, "normal=%d/%dB reserved=%d/%dB process=%dB empty=%t rings=%d", st.Commands, st.Bytes, st.ReservedCommands, st.ReservedBytes,
			s.budget.Used(), m.Empty(), s.rings)
		if !st.Oldest.IsZero() {
			fmt.Fprintf(out, " oldest=%s", s.now.Sub(st.Oldest))
		}
		if st.Broken {
			fmt.Fprint(out, " broken")
		}
		fmt.Fprintln(out)
	default:
		t.Fatalf("unknown line %v", f)
	}
}

func (s *script) offer(t *testing.T, m *Mailbox, args []string) string {
	kind, epoch, target, seq, size, broken := protocol.AddSplits, 1, 7, 0, 10, ""
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		var err error
		switch key {
		case "kind":
			kind = s.kinds[value]
		case "epoch":
			_, err = fmt.Sscan(value, &epoch)
		case "target":
			_, err = fmt.Sscan(value, &target)
		case "seq":
			_, err = fmt.Sscan(value, &seq)
		case "size":
			_, err = fmt.Sscan(value, &size)
		case "break":
			broken = value
		default:
			err = errors.New("unknown argument")
		}
		if err != nil {
			t.Fatalf("%s: %v", a, err)
		}
	}
	e := command(kind, protocol.Epoch(epoch), protocol.Attempt(target), protocol.Sequence(seq), size)
	switch broken {
	case "":
	case "version":
		e.ProtocolVersion++
	case "payload-version":
		e.PayloadVersion++
	case "durability":
		e.Durability = protocol.Terminal
	case "sender":
		e.Sender = 0
	case "job":
		e.Job = ""
	case "checksum":
		e.PayloadChecksum++
	default:
		t.Fatalf("break=%s is unknown", broken)
	}
	ack := m.Offer(e)
	text := ack.Status.String()
	if ack.Reason != protocol.ReasonNone {
		text += " (" + ack.Reason.String() + ")"
	}
	if ack.Status == protocol.Accepted {
		text += fmt.Sprintf(" #%d", ack.MailboxSequence)
	}
	if ack.RetryAfter != 0 {
		text += fmt.Sprintf(" after %s", ack.RetryAfter)
	}
	return text
}

func (s *script) take(m *Mailbox) string {
	e, ok := m.Take()
	if !ok {
		return "take: empty"
	}
	return fmt.Sprintf("take: #%d %s epoch=%d seq=%d waited=%s", e.Sequence, e.Envelope.Kind, e.Envelope.Epoch, e.Envelope.Sequence, s.now.Sub(e.Admitted))
}

// Every kind draws on exactly one of the two capacities, and gives it back when taken and when dropped by Close.
func TestEveryKindGivesItsCapacityBack(t *testing.T) {
	t.Parallel()
	for _, k := range protocol.Kinds() {
		for _, how := range []string{"take", "close"} {
			b := NewBudget(100)
			m := New(7, Limits{Commands: 1, Bytes: 50, ReservedCommands: 1, ReservedBytes: 50, PayloadBytes: 50}, b, time.Now, func() {})
			if a := m.Offer(command(k, 1, 7, 1, 50)); a.Status != protocol.Accepted {
				t.Fatalf("%s: %+v", k, a)
			}
			st, normal := m.Stats(), 1
			if k.Reserved() {
				normal = 0
			}
			if st.Commands != normal || st.ReservedCommands != 1-normal || b.Used() != int64(50*normal) {
				t.Errorf("%s reserved %+v, process %d", k, st, b.Used())
			}
			if how == "take" {
				m.Take()
			} else {
				m.Close()
			}
			if st := m.Stats(); st.Commands+st.ReservedCommands != 0 || st.Bytes+st.ReservedBytes != 0 || b.Used() != 0 {
				t.Errorf("%s after %s: %+v, process %d", k, how, st, b.Used())
			}
		}
	}
}

// A taken entry is not kept alive by the queue, and the queue does not grow with what has passed through it.
func TestQueueForgetsWhatWasTaken(t *testing.T) {
	t.Parallel()
	m := New(7, Limits{Commands: 300, Bytes: 1 << 20, PayloadBytes: 100}, NewBudget(1<<20), time.Now, func() {})
	seq := protocol.Sequence(0)
	for range 10_000 {
		for range 3 {
			seq++
			if a := m.Offer(command(protocol.AddSplits, 1, 7, seq, 1)); a.Status != protocol.Accepted {
				t.Fatalf("seq %d: %+v", seq, a)
			}
		}
		if m.Stats().Commands > 200 {
			for range 150 {
				m.Take()
			}
		}
		m.Take()
		m.Take()
	}
	if n := cap(m.mu.queue); n > 2000 {
		t.Errorf("the queue has grown to %d places for at most 300 commands", n)
	}
	for i, e := range m.mu.queue[:m.mu.head] {
		if e.Envelope != nil {
			t.Errorf("place %d still holds a taken command", i)
		}
	}
}
