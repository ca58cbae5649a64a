package kinesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
	"github.com/penstock-dev/penstock/sdk"
)

// probeWithin bounds a probe beside the limit of its caller.
const probeWithin = 20 * time.Second

// Probe implements [sdk.Prober]: it finds credentials, asks for the stream and for a place in one of its shards, and says what is wrong in words: what
// was asked, the answer, what to do.
func (s *Source) Probe(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return sdk.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	source := s.withDefaults()
	source.RequestTimeout = min(source.RequestTimeout, probeWithin/4)
	v, err := source.dial(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	if v.account != nil {
		if _, err := v.account.Retrieve(ctx); err != nil {
			return &ServiceError{
				Operation: "find credentials", Stream: source.name(), Option: "credentials", Sentinel: ErrCredentials, Err: err,
				Remedy: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or credentials: a profile, a role, a key",
			}
		}
	}
	if _, err := v.describe(ctx); errors.Is(err, ErrStreamMissing) {
		return fmt.Errorf("%w (%s)", err, v.existing(ctx))
	} else if err != nil {
		return err
	}
	shards, err := v.list(ctx, nil)
	if err != nil || len(shards) == 0 {
		return err
	}
	if _, err := v.iterator(ctx, aws.ToString(shards[len(shards)-1].ShardId), lineage.FromTrimHorizon()); err != nil {
		if f := failureOf(err); f == denied || f == unknownCaller {
			return v.explain(ctx, "GetShardIterator", err)
		}
	}
	return nil
}

// existing lists a few streams for somebody who misspelt one.
func (v *service) existing(ctx context.Context) string {
	const shown = 10
	ctx, cancel := v.deadline(ctx)
	defer cancel()
	out, err := v.client.ListStreams(ctx, &kinesis.ListStreamsInput{})
	switch {
	case err != nil:
		return "its streams are not listed to these credentials"
	case len(out.StreamNames) == 0:
		return "there are no streams"
	}
	slices.Sort(out.StreamNames)
	return "there are " + strings.Join(out.StreamNames[:min(len(out.StreamNames), shown)], ", ")
}
