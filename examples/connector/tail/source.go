package tail

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/sdk"
	"github.com/penstock-dev/penstock/sdk/base"
)

// Defaults of a [Source].
const (
	DefaultBuffer = 256
	DefaultGiveUp = 15 * time.Minute
)

// Source follows all topics of a server, each from its first message.
type Source struct {
	// Addr is host:port of the server. Required.
	Addr string
	// Dial connects; nil means that of a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Once reads what each topic holds when it is discovered, and ends there.
	Once bool
	// Buffer is how many messages of a topic, of at most 64 KiB each, may wait here; zero means [DefaultBuffer]. More wait at the server.
	Buffer int
	// GiveUp is how long a server may be away before the reader fails; zero means [DefaultGiveUp].
	GiveUp time.Duration
}

var (
	_ sdk.Source[Split] = (*Source)(nil)
	_ sdk.Prober        = (*Source)(nil)
	_ sdk.Describer     = Split{}
)

// Split is a topic, and which messages of it are still to be emitted.
type Split struct {
	Topic string `json:"topic"`
	Next  int64  `json:"next"` // the next one
	Stop  int64  `json:"stop"` // the first one that is not read any more; 0 is none
}

// SplitID implements [sdk.Split].
func (s Split) SplitID() sdk.SplitID { return sdk.SplitID(s.Topic) }

// Describe implements [sdk.Describer].
func (s Split) Describe() []sdk.Attribute {
	stop := "-"
	if s.Stop > 0 {
		stop = strconv.FormatInt(s.Stop, 10)
	}
	return []sdk.Attribute{{Name: "topic", Value: s.Topic}, {Name: "next", Value: strconv.FormatInt(s.Next, 10)}, {Name: "stop", Value: stop}}
}

// Capability implements [sdk.Source].
func (s *Source) Capability() sdk.Capability {
	c := base.Capability("tail", "1.0.0")
	c.Suite = 1 // of package conformance, passed
	c.AckRequired = true
	return c
}

// SplitCodec implements [sdk.Source].
func (s *Source) SplitCodec() sdk.Codec[Split] { return sdk.JSONCodec[Split]{Current: 1} }

// Probe implements [sdk.Prober].
func (s *Source) Probe(ctx context.Context) error {
	if s.Buffer < 0 || s.GiveUp < 0 {
		return fmt.Errorf("tail: Buffer is %d and GiveUp %s: use more than 0, or 0 for the default", s.Buffer, s.GiveUp)
	}
	_, err := s.discover(ctx, base.Round{})
	return err
}

// NewEnumerator implements [sdk.Source].
func (s *Source) NewEnumerator(ctx sdk.EnumeratorContext[Split], state *sdk.VersionedBytes) (sdk.Enumerator[Split], error) {
	return base.NewEnumerator(ctx, state, base.EnumeratorConfig[Split]{
		Discover: s.discover,
		Interval: time.Minute,
		Bounded:  s.Once,
		Identity: []sdk.Attribute{{Name: "once", Value: strconv.FormatBool(s.Once)}},
	})
}

// discover lists all topics. The end of a topic is a number from here on, so that a restart does not move it.
func (s *Source) discover(ctx context.Context, _ base.Round) ([]Split, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.say("LIST"); err != nil {
		return nil, err
	}
	var splits []Split
	for {
		heard, err := c.hear()
		switch {
		case err != nil:
			return nil, err
		case heard.word == wordEnd:
			return splits, nil
		case heard.word != wordTopic:
			return nil, fmt.Errorf("tail: the server said %s in a list of topics", heard.word)
		}
		split := Split{Topic: heard.name, Next: 1}
		if s.Once {
			split.Stop = heard.next
		}
		splits = append(splits, split)
	}
}

// NewReader implements [sdk.Source].
func (s *Source) NewReader(ctx sdk.ReaderContext) (sdk.Reader[Split], error) {
	acks := &acks{}
	return base.NewReader(ctx, base.Config[message, Split, Split]{
		Fetcher: func() (base.SplitReader[message, Split], error) {
			return &fetcher{
				receivers: map[sdk.SplitID]*receiver{},
				buffer:    cmp.Or(s.Buffer, DefaultBuffer),
				shared: shared{
					source: s, acks: acks, log: ctx.Logger(), giveUp: cmp.Or(s.GiveUp, DefaultGiveUp),
					bell: make(chan struct{}, 1), failed: make(chan error, 1),
					reconnects: ctx.Metrics().Counter("reconnects", "{connection}", "Connections that broke and were made again."),
				},
			}, nil
		},
		Emit: emit,
		OnCheckpoint: func(_ sdk.CheckpointID, splits []Split) error {
			acks.set(splits)
			return nil
		},
	})
}

// emit runs on the reader's loop: the record and the position that covers it change together.
func emit(m message, at *Split, out sdk.Output) error {
	if out.Emit(sdk.Record{Value: []byte(m.text), Time: m.at, Topic: at.Topic, Epoch: -1, Offset: m.number}) {
		at.Next = m.number + 1
	}
	return nil
}

// acks carries what completed checkpoints contain from the reader loop to the receivers. It is the only thing that both touch, nothing depends on
// when it arrives, and the lock is held for a moment.
type acks struct {
	mu   sync.Mutex
	next map[string]int64 // by topic; replaced each time, so that it holds no more than the splits of a checkpoint
}

func (a *acks) set(splits []Split) {
	next := make(map[string]int64, len(splits))
	for _, s := range splits {
		next[s.Topic] = s.Next
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = next
}

// of answers the number before which nothing is needed any more; 0 when nothing is known.
func (a *acks) of(topic string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next[topic]
}
