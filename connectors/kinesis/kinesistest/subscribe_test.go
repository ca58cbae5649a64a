package kinesistest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/penstock-dev/penstock/connectors/kinesis/kinesistest"
)

var (
	oldestPosition = types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon}
	latestPosition = types.StartingPosition{Type: types.ShardIteratorTypeLatest}
)

func (h *harness) consumer(name string) string {
	h.Helper()
	arn, err := h.srv.RegisterConsumer("orders", name)
	if err != nil {
		h.Fatal(err)
	}
	return arn
}

type subscriber struct {
	*harness
	out    *kinesis.SubscribeToShardEventStream
	events <-chan types.SubscribeToShardEventStream
}

func (h *harness) trySubscribe(arn, shard string, from types.StartingPosition) (*subscriber, error) {
	out, err := h.client.SubscribeToShard(h.Context(), &kinesis.SubscribeToShardInput{ConsumerARN: &arn, ShardId: &shard, StartingPosition: &from}, ownCodec)
	if err != nil {
		return nil, err
	}
	return &subscriber{h, out.GetStream(), out.GetStream().Events()}, nil
}

func (h *harness) subscribe(arn, shard string, from types.StartingPosition) *subscriber {
	h.Helper()
	s, err := h.trySubscribe(arn, shard, from)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { s.out.Close() })
	return s
}

// next is the next event.
func (s *subscriber) next() types.SubscribeToShardEvent {
	s.Helper()
	event, ok := (<-s.events).(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent)
	if !ok {
		s.Fatalf("no more events: %v", s.out.Err())
	}
	return event.Value
}

// expect reads events until data came, and it must be this.
func (s *subscriber) expect(want ...string) types.SubscribeToShardEvent {
	s.Helper()
	var got []string
	for {
		event := s.next()
		got = append(got, dataOf(event.Records)...)
		if len(got) >= len(want) || event.ContinuationSequenceNumber == nil {
			if !slices.Equal(got, want) {
				s.Errorf("events hold %q, want %q", got, want)
			}
			return event
		}
	}
}

// ended reads to the end, which has this error.
func (s *subscriber) ended() error {
	for range s.events {
	}
	return s.out.Err()
}

func TestASubscriptionDeliversTellsItsPlaceAndEnds(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.put("a", "b")
	sub := h.subscribe(h.consumer("reader"), first, oldestPosition)
	sub.expect("a", "b")
	h.put("c")
	sub.expect("c")
	h.srv.Advance(5 * time.Second)
	if e := sub.next(); len(e.Records) != 0 || e.ContinuationSequenceNumber == nil || *e.MillisBehindLatest != 0 {
		t.Errorf("an event without records: %+v", e)
	}
	h.srv.Advance(5 * time.Minute)
	if err := sub.ended(); err != nil {
		t.Errorf("the end after five minutes: %v", err)
	}
}

func TestContinuationNumbersMoveWithoutDataAndMeanWhatComes(t *testing.T) {
	t.Parallel()
	for _, kind := range []types.ShardIteratorType{types.ShardIteratorTypeAtSequenceNumber, types.ShardIteratorTypeAfterSequenceNumber} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, kinesistest.Options{}, 1)
			h.put("a")
			arn := h.consumer("reader")
			sub := h.subscribe(arn, first, latestPosition)
			one := *sub.next().ContinuationSequenceNumber
			h.srv.Advance(5 * time.Second)
			two := *sub.next().ContinuationSequenceNumber
			if one >= two { // of the same length
				t.Errorf("%s, then %s", one, two)
			}
			h.put("b")
			h.subscribe(arn, first, types.StartingPosition{Type: kind, SequenceNumber: &one}).expect("b")
			h.holds(h.page(h.iterator(kinesis.GetShardIteratorInput{ShardIteratorType: kind, StartingSequenceNumber: &two})), "b")
		})
	}
}

func TestTheEndOfASubscribedShardNamesItsChildren(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	sub := h.subscribe(h.consumer("reader"), first, oldestPosition)
	h.put("a")
	if e := sub.expect("a"); e.ContinuationSequenceNumber == nil {
		t.Error("it ends before the split")
	}
	h.split(first)
	last := sub.next()
	if last.ContinuationSequenceNumber != nil || len(last.ChildShards) != 2 || last.ChildShards[0].ParentShards[0] != first {
		t.Errorf("the end: %+v", last)
	}
	if err := sub.ended(); err != nil {
		t.Error(err)
	}
}

func TestASubscriptionIsTakenOverAfterFiveSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 2)
	arn := h.consumer("reader")
	old := h.subscribe(arn, first, latestPosition)
	old.next()
	h.srv.Advance(5*time.Second - time.Millisecond)
	_, err := h.trySubscribe(arn, first, latestPosition)
	isA[*types.ResourceInUseException](t, "before five seconds", err)
	h.subscribe(arn, id(1), latestPosition).next()
	h.subscribe(h.consumer("other"), first, latestPosition).next()
	h.srv.Advance(time.Millisecond)
	newer := h.subscribe(arn, first, latestPosition)
	isA[*types.ResourceInUseException](t, "the old subscription", old.ended())
	h.put("a")
	newer.expect("a")
}

func TestASubscriptionEndsWithItsConsumerAndItsStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	one, two := h.consumer("one"), h.consumer("two")
	first1, second := h.subscribe(one, first, latestPosition), h.subscribe(two, first, latestPosition)
	if _, err := h.client.DeregisterStreamConsumer(t.Context(), &kinesis.DeregisterStreamConsumerInput{ConsumerARN: &one}); err != nil {
		t.Fatal(err)
	}
	isA[*types.ResourceNotFoundException](t, "after its consumer", first1.ended())
	_, err := h.client.DeleteStream(t.Context(), &kinesis.DeleteStreamInput{StreamName: aws.String("orders")})
	isA[*types.ResourceInUseException](t, "delete a stream with a consumer", err)
	if err := h.srv.DeleteStream("orders"); err != nil {
		t.Fatal(err)
	}
	isA[*types.ResourceNotFoundException](t, "after its stream", second.ended())
	if again := h.srv.CreateStream("orders", 1); again != nil {
		t.Fatal(again)
	}
	if h.consumer("one") == one {
		t.Error("a consumer registered again has the ARN of the old one")
	}
}

func TestConsumersAreCreatedListedInPagesAndLimited(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{ControlTime: time.Second}, 1)
	h.srv.Advance(time.Second)
	arn := h.consumer("a")
	_, err := h.trySubscribe(arn, first, latestPosition)
	isA[*types.ResourceInUseException](t, "a consumer that is being made", err)
	h.srv.Advance(time.Second)
	h.subscribe(arn, first, latestPosition).next()
	for _, name := range []string{"b", "c", "d"} {
		h.consumer(name)
	}
	streamARN := aws.String("arn:aws:kinesis:us-east-1:123456789012:stream/orders")
	var names []string
	in := &kinesis.ListStreamConsumersInput{StreamARN: streamARN, MaxResults: aws.Int32(3)}
	for {
		page, err := h.client.ListStreamConsumers(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Consumers {
			names = append(names, *c.ConsumerName)
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			break
		}
	}
	if !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Error(names)
	}
	for i := range 16 {
		h.srv.Advance(time.Second)
		h.consumer("more-" + string(rune('a'+i)))
	}
	h.srv.Advance(time.Second)
	_, err = h.client.RegisterStreamConsumer(t.Context(), &kinesis.RegisterStreamConsumerInput{StreamARN: streamARN, ConsumerName: aws.String("last")})
	isA[*types.LimitExceededException](t, "the 21st", err)
}

func TestFaultsOfSubscriptions(t *testing.T) {
	t.Parallel()
	event := func(e kinesistest.Effect) kinesistest.Fault {
		return kinesistest.Fault{Operation: kinesistest.SubscribeToShardEvent, Consumer: "reader", Shard: first, Skip: 1, Effect: e}
	}
	for _, c := range []struct {
		name  string
		fault kinesistest.Fault
		check func(*testing.T, error)
	}{
		{"cut within a frame, which the SDK takes for an end", event(kinesistest.Cut()), func(t *testing.T, err error) {
			if err != nil {
				t.Error(err)
			}
		}},
		{"ended in good order", event(kinesistest.EndStream()), func(t *testing.T, err error) {
			if err != nil {
				t.Error(err)
			}
		}},
		{"a broken frame", event(kinesistest.Corrupt()), func(t *testing.T, err error) {
			if err == nil {
				t.Error("no error")
			}
		}},
		{"an error by its type", event(kinesistest.Fail("KMSThrottlingException", "injected")), func(t *testing.T, err error) {
			isA[*types.KMSThrottlingException](t, "the end", err)
		}},
		{"an internal error", event(kinesistest.InternalError()), func(t *testing.T, err error) { hasCode(t, "the end", err, "InternalFailure") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, kinesistest.Options{}, 1)
			h.srv.Inject(c.fault)
			h.put("a")
			sub := h.subscribe(h.consumer("reader"), first, oldestPosition)
			sub.expect("a")
			h.put("b")
			for e := range sub.events {
				t.Errorf("an event: %+v", e)
			}
			c.check(t, sub.out.Err())
		})
	}
}

func TestASilentSubscriptionGoesOnWhenTheFaultIsRemoved(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.put("a")
	silence := h.srv.Inject(kinesistest.Fault{Operation: kinesistest.SubscribeToShardEvent, Times: kinesistest.Always, Effect: kinesistest.Hang()})
	sub := h.subscribe(h.consumer("reader"), first, oldestPosition)
	<-silence.Reached()
	h.srv.Advance(time.Minute)
	select {
	case e := <-sub.events:
		t.Fatalf("an event: %v", e)
	default:
	}
	silence.Remove()
	sub.expect("a")
}

func TestAnEventCanLeaveOutWhatItMustHave(t *testing.T) {
	t.Parallel()
	h := newHarness(t, kinesistest.Options{}, 1)
	h.srv.Inject(kinesistest.Fault{Operation: kinesistest.SubscribeToShardEvent, Effect: kinesistest.EndEarly()})
	h.put("a")
	sub := h.subscribe(h.consumer("reader"), first, oldestPosition)
	if e := sub.next(); e.ContinuationSequenceNumber != nil || len(e.ChildShards) != 0 || len(e.Records) != 1 {
		t.Errorf("%+v", e)
	}
	h.put("b")
	sub.expect("b") // it is not an end
	h.srv.Inject(kinesistest.Fault{Operation: "SubscribeToShard", Effect: kinesistest.Throttle()})
	_, err := h.trySubscribe(h.consumer("other"), first, oldestPosition)
	if _, typed := errors.AsType[*types.ProvisionedThroughputExceededException](err); !typed {
		hasCode(t, "the call", err, "ProvisionedThroughputExceededException")
	}
}
