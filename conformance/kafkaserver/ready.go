package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	askEvery  = 50 * time.Millisecond
	askWithin = time.Second // one question; a frozen broker answers none
)

// clusterView is what a broker says about the cluster.
type clusterView struct {
	brokers map[int]bool
	topics  []kmsg.MetadataResponseTopic
}

// await asks until the cluster is as wanted, a node ends by itself, or ctx ends.
func (s *Server) await(ctx context.Context, wanted func(clusterView) bool) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...), kgo.DisableClientMetrics(), kgo.RequestRetries(0),
		kgo.DialTimeout(askWithin), kgo.RequestTimeoutOverhead(askWithin))
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	defer client.Close()
	again := time.NewTicker(askEvery)
	defer again.Stop()
	var last error
	for {
		view, err := ask(ctx, client)
		if err == nil && wanted(view) {
			return nil
		}
		last = err
		for _, n := range s.nodes {
			if err := n.exited(); err != nil {
				return err
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("kafkaserver: not ready: %w\n%s", errors.Join(context.Cause(ctx), last), s.Log(20))
		}
	}
}

func ask(ctx context.Context, client *kgo.Client) (clusterView, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	if err != nil {
		return clusterView{}, err
	}
	view := clusterView{brokers: make(map[int]bool), topics: resp.Topics}
	for i := range resp.Brokers {
		view.brokers[int(resp.Brokers[i].NodeID)] = true
	}
	return view, nil
}
