package kinesis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// Waiting for a consumer that is being registered.
const (
	consumerPoll = time.Second
	consumerWait = 5 * time.Minute
)

// consumer answers the ARN of the enhanced fan-out consumer, registered and ready. Readers of the process ask one after the other, so that one
// registers it and the others find it. An error that passes is not [ErrConsumer]: the service did not say anything about it.
func (v *service) consumer(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, consumerWait)
	defer cancel()
	sum, err := v.shared.summary(ctx, v.describe)
	if err != nil {
		return "", err
	}
	select {
	case v.shared.asking <- struct{}{}:
		defer func() { <-v.shared.asking }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	for {
		d, err := v.describeConsumer(ctx, sum.arn)
		switch f := failureOf(err); {
		case err == nil && d.ConsumerStatus == types.ConsumerStatusActive:
			return aws.ToString(d.ConsumerARN), nil
		case err == nil: // being made, or going away before it can be made anew
		case f == missing && !v.consumerByARN():
			if err := v.register(ctx, sum.arn); err != nil {
				return "", err
			}
		case f == throttled, f == unreachable, f == unclear:
			return "", v.explain(ctx, "DescribeStreamConsumer", err)
		default:
			return "", v.consumerError("DescribeStreamConsumer", err)
		}
		if err := sleep(ctx, consumerPoll); err != nil {
			return "", fmt.Errorf("%w: consumer %q is not ready: %w", ErrConsumer, v.source.Consumer, err)
		}
	}
}

func (v *service) consumerByARN() bool { return strings.HasPrefix(v.source.Consumer, "arn:") }

func (v *service) describeConsumer(ctx context.Context, streamARN string) (*types.ConsumerDescription, error) {
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	in := &kinesis.DescribeStreamConsumerInput{ConsumerName: &v.source.Consumer, StreamARN: &streamARN}
	if v.consumerByARN() {
		in = &kinesis.DescribeStreamConsumerInput{ConsumerARN: &v.source.Consumer}
	}
	out, err := v.client.DescribeStreamConsumer(ctx, in)
	if err != nil {
		return nil, err
	}
	if out.ConsumerDescription == nil {
		return nil, errors.New("the service describes the consumer with nothing")
	}
	return out.ConsumerDescription, nil
}

// register registers the consumer. That another process was faster is as good.
func (v *service) register(ctx context.Context, streamARN string) error {
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	_, err := v.client.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{ConsumerName: &v.source.Consumer, StreamARN: &streamARN})
	if err == nil {
		return nil
	}
	switch failureOf(err) {
	case inUse, unreachable, unclear:
		return nil
	case throttled, expired, missing, refused, denied, unknownCaller:
	}
	return v.consumerError("RegisterStreamConsumer", err)
}

func (v *service) consumerError(operation string, err error) error {
	e := &ServiceError{Operation: operation, Stream: v.source.name(), Option: "efo", Sentinel: ErrConsumer, Err: err}
	switch failureOf(err) {
	case missing:
		e.Remedy = fmt.Sprintf("there is no consumer %q: correct its ARN, or give a name, which is registered", v.source.Consumer)
	case throttled:
		e.Remedy = "a stream has 20 consumers at most, and five may be registered at a time: use one that exists, or deregister one that nobody needs"
	case denied, unknownCaller:
		e.Remedy = "allow kinesis:" + operation + " and kinesis:SubscribeToShard on the consumer (docs/en/kinesis.md has the whole policy)"
	case expired, inUse, refused, unreachable, unclear:
		e.Remedy = "it is tried again"
	}
	return e
}
