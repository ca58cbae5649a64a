package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/penstock-dev/penstock/sdk"
)

var (
	// ErrUnreachable marks an error of the way to the cluster: no connection, no answer, or a handshake that fails.
	ErrUnreachable = errors.New("kafka: the cluster cannot be reached")
	// ErrLogin marks a login that the cluster refused.
	ErrLogin = errors.New("kafka: the cluster refused the login")
	// ErrTopicMissing marks a topic or partition that the cluster does not have.
	ErrTopicMissing = errors.New("kafka: no such topic or partition")
	// ErrTopicReplaced marks a topic that was deleted and created anew: the saved offsets belong to the old one.
	ErrTopicReplaced = errors.New("kafka: the topic was created anew under its name")
	// ErrOffsetOutOfRange marks an offset that the log does not hold.
	ErrOffsetOutOfRange = errors.New("kafka: the offset is not in the log")
	// ErrTruncated marks a log that lost records which had been read.
	ErrTruncated = errors.New("kafka: the log was truncated")
)

// PartitionError is what went wrong with one partition. It unwraps to its cause and, where there is one, to a sentinel of
// this package.
type PartitionError struct {
	Topic     string
	Partition int32 // -1 when it concerns the whole topic
	Offset    int64 // the next offset to read; -1 when it concerns the whole topic
	Problem   string
	Remedy    string
	Err       error
}

func (e *PartitionError) Error() string {
	where := fmt.Sprintf("kafka: topic %q", e.Topic)
	if e.Partition >= 0 {
		where += fmt.Sprintf(" partition %d at offset %d", e.Partition, e.Offset)
	}
	return fmt.Sprintf("%s: %s: %s", where, e.Problem, e.Remedy)
}

// Unwrap returns the cause.
func (e *PartitionError) Unwrap() error { return e.Err }

// connectionError is an error of the way to the cluster, with what to do about it.
type connectionError struct {
	sentinel error
	reason   error
	remedy   string
}

func (e *connectionError) Error() string {
	return fmt.Sprintf("%v: %v: %s", e.sentinel, e.reason, e.remedy)
}

func (e *connectionError) Unwrap() []error { return []error{e.sentinel, e.reason} }

// unreachable explains an error of a request that got no answer. The end of ctx stays what it is, unless that was its time limit.
func unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if isLogin(err) {
		return &connectionError{ErrLogin, err, "check mechanism, user and password"}
	}
	return &connectionError{ErrUnreachable, err, connectionRemedy(err)}
}

func isLogin(err error) bool {
	return errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) || errors.Is(err, kerr.IllegalSaslState)
}

func connectionRemedy(err error) string {
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		alert     tls.AlertError
		record    tls.RecordHeaderError
		firstRead *kgo.ErrFirstReadEOF
	)
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("host %q is not known here: correct brokers, or the listeners that the brokers advertise", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there: is the broker running, and is the port right?"
	case errors.As(err, &authority):
		return "the broker's certificate is signed by an authority that is not trusted here: give its CA certificate"
	case errors.As(err, &hostname):
		return "the broker's certificate is for another name: connect by that name, or set the server name"
	case errors.As(err, &alert), errors.As(err, &record):
		return "the TLS handshake failed: does the broker want a client certificate, and is this its TLS port?"
	case errors.As(err, &firstRead):
		return "the broker closed the connection at once: it expects TLS, or a login (SASL), that this client does not use, or the other way round"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time: is the address right, does a firewall drop packets, does the broker hang, does only one side use TLS?"
	default:
		return "check brokers, and whether that port expects TLS or a login (SASL)"
	}
}

// transient reports an error that goes away by itself, so that a running reader waits rather than fails.
func transient(err error) bool {
	if errors.Is(err, ErrLogin) {
		return false
	}
	return errors.Is(err, ErrUnreachable) || kerr.IsRetriable(err)
}

// outOfRange says where the log begins and ends; both are negative when that is not known.
func outOfRange(s Split, start, end int64, cause error) error {
	problem := "the log does not hold that offset"
	switch {
	case start < 0 || end < 0:
	case s.Offset < start:
		problem = fmt.Sprintf("the log begins at %d: records %d to %d were deleted, by retention or on request", start, s.Offset, start-1)
	default:
		problem = fmt.Sprintf("the log ends at %d, before that offset: it was truncated or is another log", end)
	}
	return sdk.Fatal(&PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: s.Offset, Problem: problem,
		Remedy: "start the job without its saved state (--restore none) to read from the configured start; longer retention prevents it",
		Err:    errors.Join(ErrOffsetOutOfRange, cause),
	})
}

func truncated(s Split, loss *kgo.ErrDataLoss) error {
	return sdk.Fatal(&PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: loss.ConsumedTo,
		Problem: fmt.Sprintf("records %d to %d, read before, are no longer in the log: an out-of-date replica became leader (unclean election)", loss.ResetTo, loss.ConsumedTo-1),
		Remedy:  "decide what to do with what was already written of them, then start the job without its saved state (--restore none)",
		Err:     errors.Join(ErrTruncated, loss),
	})
}

func replaced(s Split, now [16]byte) error {
	return sdk.Fatal(&PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: s.Offset,
		Problem: fmt.Sprintf("the topic was deleted and created anew: its id was %s and is %s", topicIDText(s.TopicID), topicIDText(now)),
		Remedy:  "start the job without its saved state (--restore none) to read the new topic",
		Err:     ErrTopicReplaced,
	})
}

func topicMissing(s Split, cause error) error {
	return &PartitionError{
		Topic: s.Topic, Partition: s.Partition, Offset: s.Offset,
		Problem: "the cluster has no such topic or partition (any more)",
		Remedy:  "create it again, or start a job without it",
		Err:     errors.Join(ErrTopicMissing, cause),
	}
}
