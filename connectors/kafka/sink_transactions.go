package kafka

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/penstock-dev/penstock/sdk"
)

// transactions speaks to the cluster's transaction coordinators with raw requests, which need no client that wrote the
// transaction. The client finds the right broker, and tries again what a moved coordinator causes.
type transactions struct{ cluster }

const (
	// settlePause is the wait before a request is repeated that the coordinator could not take yet.
	settlePause = 10 * time.Millisecond
	// settleWithin bounds these repetitions: how long it takes to write markers to all partitions, to elect another
	// coordinator, or to create the log of transactions in a cluster that never had one.
	settleWithin = 20 * time.Second
	// lostPause is the least wait after a broker did not answer at all.
	lostPause = 100 * time.Millisecond
)

// settled asks until there is an answer that stands. answer is the coordinator's, err why there is none. The client returns answers to
// its own question, who coordinates an id, as errors: they are answers here. A coordinator that is not there is waited for too: when its broker
// was lost, the cluster names another one as soon as it has noticed.
func (c transactions) settled(ctx context.Context, ask func() (code int16, err error)) (answer, err error) {
	deadline := time.Now().Add(settleWithin)
	for pause := settlePause; ; pause = min(2*pause, retryPause) {
		code, err := ask()
		answer, ok := errors.AsType[*kerr.Error](err)
		switch {
		case err == nil && code == 0:
			return nil, nil
		case err == nil:
			answer = kerr.TypedErrorForCode(code)
		case !ok:
			err = unreachable(ctx, err, c.login)
			if !transient(err) || time.Now().After(deadline) {
				return nil, err
			}
			c.client.ForceMetadataRefresh()
			if err := sleep(ctx, max(pause, lostPause)); err != nil {
				return nil, err
			}
			continue
		}
		if !answer.Retriable && !errors.Is(answer, kerr.ConcurrentTransactions) || time.Now().After(deadline) {
			return answer, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// end commits or aborts a transaction. Without answer and error it ended as asked, now or before.
func (c transactions) end(ctx context.Context, p *prepared, commit bool) (answer, err error) {
	return c.settled(ctx, func() (int16, error) {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.ID, p.ProducerID, p.Epoch, commit
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return 0, err
		}
		return resp.ErrorCode, nil
	})
}

// fence takes a transactional id over: whatever is open under it is aborted, and whoever wrote under it cannot any more.
func (c transactions) fence(ctx context.Context, id string, timeout time.Duration) error {
	_, err := c.take(ctx, id, timeout)
	return err
}

// initError explains why a transactional id cannot be taken over; nil stays nil.
func initError(id string, timeout time.Duration, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return sdk.Fatal(fmt.Errorf("%w: %w", timeoutError(timeout, 0), err))
	}
	if e := unauthorized(id, err); e != nil {
		return e
	}
	return fmt.Errorf("kafka sink: take over transactional id %q: %w", id, err)
}

// listWithin bounds how long list waits for a broker that is down: until then the cluster has moved what it coordinated.
const listWithin = 30 * time.Second

// list finds the transactional ids of the job, whatever number of tasks an earlier run had. Every broker has to answer: the one that
// is missing may be the one that knows a transaction which must not stay.
func (c transactions) list(ctx context.Context, prefix, job string) (ids []string, err error) {
	for deadline := time.Now().Add(listWithin); ; {
		ids, err = c.listOnce(ctx, prefix, job)
		if err == nil || !transient(err) || time.Now().After(deadline) {
			return ids, err
		}
		c.client.ForceMetadataRefresh() // a broker that is gone need not answer
		if err := sleep(ctx, retryPause); err != nil {
			return nil, err
		}
	}
}

func (c transactions) listOnce(ctx context.Context, prefix, job string) ([]string, error) {
	pattern := regexp.QuoteMeta(jobPrefix(prefix, job)) + "-[0-9]+-[0-9]+" // brokers before 4.1 do not know it and list all
	req := kmsg.NewPtrListTransactionsRequest()
	req.TransactionalIDPattern = &pattern
	var ids []string
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, fmt.Errorf("kafka sink: list transactions (needs Kafka 3.0): %w", unreachable(ctx, shard.Err, c.login))
		}
		resp, ok := shard.Resp.(*kmsg.ListTransactionsResponse)
		if !ok {
			continue
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return nil, fmt.Errorf("kafka sink: list transactions: broker %d: %w", shard.Meta.NodeID, err)
		}
		for i := range resp.TransactionStates {
			if id := resp.TransactionStates[i].TransactionalID; isSlotID(id, prefix, job) {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// standing is what a coordinator says of a transactional id.
type standing struct {
	state      string // Empty, Ongoing, PrepareCommit, CompleteAbort, ...
	producerID int64
	epoch      int16
}

const stateOngoing = "Ongoing"

// describe asks for ids; those that the cluster does not know are missing in the answer.
func (c transactions) describe(ctx context.Context, ids []string) (map[string]standing, error) {
	found := make(map[string]standing, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	answer, err := c.settled(ctx, func() (int16, error) {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = ids
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return 0, err
		}
		return readStandings(resp, found), nil
	})
	if err != nil || answer == nil {
		return found, err
	}
	if e := unauthorized(ids[0], answer); e != nil {
		return nil, e
	}
	return nil, fmt.Errorf("kafka sink: describe transactional ids such as %q: %w", ids[0], answer)
}

// readStandings returns the first error, but for that of an id which the cluster does not know.
func readStandings(resp *kmsg.DescribeTransactionsResponse, into map[string]standing) int16 {
	for i := range resp.TransactionStates {
		switch s := &resp.TransactionStates[i]; s.ErrorCode {
		case kerr.TransactionalIDNotFound.Code:
		case 0:
			into[s.TransactionalID] = standing{s.State, s.ProducerID, s.ProducerEpoch}
		default:
			return s.ErrorCode
		}
	}
	return 0
}
