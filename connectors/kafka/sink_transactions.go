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
	// concurrentPause is the wait before a request is repeated that came while the coordinator still worked on the one before.
	concurrentPause = 10 * time.Millisecond
	// concurrentWithin bounds these repetitions: it is how long markers may take to reach all partitions.
	concurrentWithin = 20 * time.Second
)

// settled repeats a request while the coordinator answers that an earlier one is still at work.
func settled(ctx context.Context, ask func() (answer, err error)) (answer, err error) {
	deadline := time.Now().Add(concurrentWithin)
	for pause := concurrentPause; ; pause = min(2*pause, retryPause) {
		answer, err = ask()
		if err != nil || !errors.Is(answer, kerr.ConcurrentTransactions) || time.Now().After(deadline) {
			return answer, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// end commits or aborts a transaction. answer is the coordinator's, err why there is none. Without answer and error the
// transaction ended as asked, now or before.
func (c transactions) end(ctx context.Context, p *prepared, commit bool) (answer, err error) {
	return settled(ctx, func() (error, error) { //nolint:revive // two errors of different kinds
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.ID, p.ProducerID, p.Epoch, commit
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return nil, unreachable(ctx, err, c.login)
		}
		return kerr.ErrorForCode(resp.ErrorCode), nil
	})
}

// fence takes a transactional id over: whatever is open under it is aborted, and whoever wrote under it cannot any more.
func (c transactions) fence(ctx context.Context, id string, timeout time.Duration) error {
	answer, err := settled(ctx, func() (error, error) { //nolint:revive // two errors of different kinds
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = &id
		req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return nil, unreachable(ctx, err, c.login)
		}
		return kerr.ErrorForCode(resp.ErrorCode), nil
	})
	if err != nil {
		return err
	}
	return initError(id, timeout, answer)
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

// list finds the transactional ids of the job, whatever number of tasks an earlier run had.
func (c transactions) list(ctx context.Context, prefix, job string) ([]string, error) {
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
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, unreachable(ctx, err, c.login)
	}
	for i := range resp.TransactionStates {
		s := &resp.TransactionStates[i]
		switch err := kerr.ErrorForCode(s.ErrorCode); {
		case errors.Is(err, kerr.TransactionalIDNotFound):
		case err != nil:
			if e := unauthorized(s.TransactionalID, err); e != nil {
				return nil, e
			}
			return nil, fmt.Errorf("kafka sink: describe transactional id %q: %w", s.TransactionalID, err)
		default:
			found[s.TransactionalID] = standing{s.State, s.ProducerID, s.ProducerEpoch}
		}
	}
	return found, nil
}
