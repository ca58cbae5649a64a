package kafka

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// watchPause is the time between looks at the connections, and between questions while there is reason to ask.
	watchPause = 250 * time.Millisecond
	// silenceMargin is how long an answer may be late before others are asked what became of the broker. Asking is cheap and changes
	// nothing by itself, so it is short.
	silenceMargin = 500 * time.Millisecond
	// longestSilence bounds that wait for sources that let brokers hold a fetch for long.
	longestSilence = time.Second
	// watchAsks is how many brokers are asked at once. More than one, as the one asked may be just as frozen.
	watchAsks = 3
	// watchWithin bounds one round of questions.
	watchWithin = time.Second
	// shutFor is how long a broker whose partitions others lead is left alone once it fell silent, unless they say that it is back.
	shutFor = 5 * time.Second
)

// watch moves a client on from a leader that froze. The client learns of a new leader when the request to the old one has failed, and
// asks a broker chosen at random, one question at a time, each with the same long limit: a broker that answers nothing holds it up
// for many seconds, long after another one leads. So when an answer is late the watch asks several brokers itself. Only when one of
// them names a leader which the client does not know, it closes the connections on which the client waits and has it look again. A
// broker that is merely slow is never disturbed: nobody took its place.
type watch struct {
	client      *kgo.Client
	connections *connections
	patience    time.Duration // for an answer
	next        int           // of the brokers to ask

	stop    context.CancelFunc
	running sync.WaitGroup
}

// watchOver starts a watch. The caller closes it, before the client.
func watchOver(client *kgo.Client, connections *connections, fetchMaxWait time.Duration) *watch {
	ctx, stop := context.WithCancel(context.Background())
	w := &watch{client: client, connections: connections, patience: min(fetchMaxWait, longestSilence) + silenceMargin, stop: stop}
	w.running.Go(func() { w.run(ctx) })
	return w
}

func (w *watch) close() {
	w.stop()
	w.running.Wait()
}

func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if late := w.connections.silentFor(w.patience); len(late) > 0 || w.connections.anyShut() {
			w.look(ctx, late)
		}
	}
}

// look asks brokers who leads the topics that the client reads, and acts on the first answer that is news to the client.
func (w *watch) look(ctx context.Context, late []string) {
	brokers, topics := w.choose(), w.client.GetConsumeTopics()
	if len(brokers) == 0 || len(topics) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx) // no deadline: the end of a round is no trouble of the broker that was asked
	defer time.AfterFunc(watchWithin, cancel).Stop()
	answers := make(chan *kmsg.MetadataResponse, len(brokers))
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	for _, b := range brokers {
		asking.Go(func() {
			resp, _ := b.Request(ctx, metadataRequest(topics)) // one that fails is one that does not know
			answer, _ := resp.(*kmsg.MetadataResponse)
			answers <- answer
		})
	}
	for range brokers {
		if answer := <-answers; answer != nil && w.learn(answer, late) {
			return
		}
	}
}

// choose picks the brokers to ask, others each time.
func (w *watch) choose() []*kgo.Broker {
	all := w.client.DiscoveredBrokers()
	chosen := make([]*kgo.Broker, 0, watchAsks)
	for range min(watchAsks, len(all)) {
		chosen = append(chosen, all[w.next%len(all)])
		w.next++
	}
	return chosen
}

func metadataRequest(topics []string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

// learn takes an answer and reports that it names a leader which the client does not know. Then the client is made to look: whatever
// it waits for from brokers that are late and lead nothing is ended, or its own question might be stuck behind that.
func (w *watch) learn(answer *kmsg.MetadataResponse, late []string) (news bool) {
	leading := make(map[int32]bool)
	for i := range answer.Topics {
		t := &answer.Topics[i]
		if t.ErrorCode != 0 || t.Topic == nil {
			continue
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if p.ErrorCode != 0 || p.Leader < 0 {
				continue
			}
			leading[p.Leader] = true
			leader, epoch, _ := w.client.PartitionLeader(*t.Topic, p.Partition)
			news = news || leader < 0 || leader != p.Leader && (p.LeaderEpoch > epoch || p.LeaderEpoch < 0)
		}
	}
	for i := range answer.Brokers {
		if b := &answer.Brokers[i]; leading[b.NodeID] {
			address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
			w.connections.reopen(address)
			late = slices.DeleteFunc(slices.Clone(late), func(l string) bool { return l == address })
		}
	}
	if news {
		w.connections.drop(late, time.Now().Add(shutFor))
		w.client.ForceMetadataRefresh()
	}
	return news
}
