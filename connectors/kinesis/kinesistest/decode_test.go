package kinesistest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fuzzed is a server without a network, with something of everything in it.
func fuzzed(t testing.TB) *Server {
	t.Helper()
	s, err := New(Options{InMemory: true, Clock: NewClock(begin), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.CreateStream("orders", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RegisterConsumer("orders", "reader"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("orders", Record{PartitionKey: "a", Data: []byte("v")}, Record{PartitionKey: "b", Data: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Split("orders", shardID(0)); err != nil {
		t.Fatal(err)
	}
	return s
}

func FuzzRequests(f *testing.F) {
	for name := range operations {
		for _, body := range []string{
			`{}`, `null`, `[]`, `{"StreamName":"orders"}`, `{"StreamARN":"arn:aws:kinesis:us-east-1:123456789012:stream/orders","ConsumerName":"x"}`,
			`{"StreamName":"orders","ShardId":"shardId-000000000001","ShardIteratorType":"AT_TIMESTAMP","Timestamp":1767323045.5}`,
			`{"StreamName":"orders","ShardCount":3,"TargetShardCount":4,"ScalingType":"UNIFORM_SCALING","RetentionPeriodHours":48,"MaxRecordSizeInKiB":2048}`,
			`{"StreamName":"orders","PartitionKey":"k","Data":"dg==","ExplicitHashKey":"340282366920938463463374607431768211455","Records":[{"PartitionKey":"k","Data":"dg=="}]}`,
			`{"StreamName":"orders","ShardToSplit":"shardId-000000000001","NewStartingHashKey":"200000000000000000000000000000000000000","ShardToMerge":"shardId-000000000002","AdjacentShardToMerge":"shardId-000000000003"}`,
			`{"StreamName":"orders","MaxResults":1,"Limit":1,"ShardFilter":{"Type":"AFTER_SHARD_ID","ShardId":"shardId-000000000001"},"ExclusiveStartShardId":"shardId-000000000000"}`,
			`{"ShardIterator":"AAAA","NextToken":"AAAA"}`,
			`{"ConsumerARN":"arn:aws:kinesis:us-east-1:123456789012:stream/orders/consumer/reader:20260102030406","ShardId":"shardId-000000000001","StartingPosition":{"Type":"TRIM_HORIZON"}}`,
		} {
			f.Add(name, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, operation string, body []byte) {
		s := fuzzed(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a subscription ends after its first event
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
		r.Header["X-Amz-Target"] = []string{targetPrefix + operation}
		r.Header.Set("Content-Type", contentType)
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // what net/http compares
					panic(p)
				}
			}()
			s.ServeHTTP(w, r)
		}()
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == contentType && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("not JSON: %s", w.Body)
		}
		if st := s.mu.streams["orders"]; st != nil {
			checkRing(t, st)
		}
	})
}

func FuzzSequenceNumbers(f *testing.F) {
	for _, s := range []string{
		"", "0", "-1", "1", strings.Repeat("9", 56), strings.Repeat("9", 200), "9223372036854775807",
		sequence{created: 1767323045, index: endIndex, written: maxSeconds, shard: 7}.String(), sequence{created: 0, index: 0, written: 0, shard: 0}.String(),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if q, ok := parseSequence(text); ok && q.String() != text {
			t.Errorf("%q is read as %+v, which is %s", text, q, q)
		}
	})
}

func FuzzHashKeys(f *testing.F) {
	for _, s := range []string{"", "0", "00", "1", highest.String(), "340282366920938463463374607431768211456", "-5", "1e3", " 7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := parseHash(text); err == nil && k.String() != text {
			t.Errorf("%q is read as %s", text, k)
		}
	})
}

func FuzzTokens(f *testing.F) {
	s := newSealer()
	good := s.seal(iteratorPurpose, iterator{Stream: "orders", Shard: shardID(1), Index: 16})
	f.Add(good)
	f.Add(s.seal(listPurpose, listPlace{Stream: "orders"}))
	f.Add("")
	f.Add(base64.StdEncoding.EncodeToString(make([]byte, 40)))
	f.Fuzz(func(t *testing.T, text string) {
		var it iterator
		if s.open(iteratorPurpose, text, &it) && it != (iterator{Stream: "orders", Shard: shardID(1), Index: 16}) {
			t.Errorf("%q is taken for an iterator: %+v", text, it)
		}
	})
}

func FuzzEventFrames(f *testing.F) {
	f.Add("event", "SubscribeToShardEvent", []byte(`{"Records":[]}`))
	f.Add("exception", "ResourceInUseException", []byte{})
	f.Fuzz(func(t *testing.T, messageType, name string, payload []byte) {
		out := newEventWriter(httptest.NewRecorder())
		frame, err := out.frame(messageType, eventTypeHeader, name, payload)
		if err != nil {
			t.Skip(err) // a header that is too long
		}
		message, err := eventstream.NewDecoder().Decode(bytes.NewReader(frame), nil)
		if err != nil || !bytes.Equal(message.Payload, payload) || message.Headers.Get(eventTypeHeader).String() != name {
			t.Errorf("%v: %+v", err, message)
		}
		for _, broken := range [][]byte{frame[:len(frame)/2], flip(frame)} {
			if _, err := eventstream.NewDecoder().Decode(bytes.NewReader(broken), nil); err == nil {
				t.Errorf("a broken frame is read: %x", broken)
			}
		}
	})
}

func flip(frame []byte) []byte {
	broken := slices.Clone(frame)
	broken[len(broken)/2] ^= 0x20
	return broken
}

func TestEveryOperationDecodesAndAnswersNothing(t *testing.T) {
	t.Parallel()
	s := fuzzed(t)
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		req, err := decodeRequest(name, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.serve(req, &Effect{})
		if refused, ok := errors.AsType[*apiError](err); name != "ListStreams" && (!ok || refused.Code == internalFailure) {
			t.Errorf("%s without anything: %v", name, err)
		}
	}
}

func TestTokensOfAnotherServerAreRefused(t *testing.T) {
	t.Parallel()
	one, two := newSealer(), newSealer()
	var it iterator
	if two.open(iteratorPurpose, one.seal(iteratorPurpose, it), &it) {
		t.Error("an iterator of another server is taken")
	}
	if one.open(listPurpose, one.seal(iteratorPurpose, it), &listPlace{}) {
		t.Error("an iterator is taken for the token of a list")
	}
}

func TestTheNetworkInsideEnds(t *testing.T) {
	t.Parallel()
	s := fuzzed(t)
	s.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Endpoint(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.HTTPClient().Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		t.Error("a closed server answers")
	}
}
