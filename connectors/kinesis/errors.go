package kinesis

import (
	"errors"
	"fmt"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/penstock-dev/penstock/connectors/kinesis/lineage"
)

var (
	// ErrUnreachable marks an error of the way to the service: no connection, or no answer.
	ErrUnreachable = errors.New("kinesis: the service cannot be reached")
	// ErrCredentials marks credentials that could not be found, or that the service refuses.
	ErrCredentials = errors.New("kinesis: no usable credentials")
	// ErrAccess marks what these credentials may not do.
	ErrAccess = errors.New("kinesis: access denied")
	// ErrStreamMissing marks a stream that does not exist.
	ErrStreamMissing = errors.New("kinesis: no such stream")
	// ErrRecreated marks a stream that was deleted and created anew under its name.
	ErrRecreated = lineage.ErrRecreated
	// ErrLost marks records that expired before they were read.
	ErrLost = lineage.ErrLost
	// ErrPosition marks a position that the service does not take.
	ErrPosition = errors.New("kinesis: the position is not one of the shard")
	// ErrConsumer marks an enhanced fan-out consumer that cannot be used.
	ErrConsumer = errors.New("kinesis: the consumer cannot be used")
)

// ConfigError says that what an option names cannot be used. It is a problem of this side.
type ConfigError struct {
	Option  string // as it is named in a job file: "credentials"
	Problem string
	Remedy  string
	Err     error
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("kinesis: %s: %s: %s", e.Option, e.Problem, e.Remedy)
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// ServiceError is what the service answered, or that it did not, with what to do about it. It unwraps to a sentinel of this package and to
// its cause.
type ServiceError struct {
	Operation string // such as "ListShards"
	Stream    string
	// Option is the setting to look at first, as it is named in a job file.
	Option   string
	Remedy   string
	Sentinel error
	Err      error
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("%v: stream %q: %s: %s: %s", e.Sentinel, e.Stream, e.Operation, brief(e.Err), e.Remedy)
}

// brief is what of the SDK's error is worth reading: what the service said, or why nothing was sent to it.
func brief(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode() + ": " + api.ErrorMessage()
	}
	if send, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return send.Err.Error()
	}
	return err.Error()
}

// Unwrap returns the sentinel and the cause.
func (e *ServiceError) Unwrap() []error { return []error{e.Sentinel, e.Err} }

// ShardError is what went wrong with one shard. It unwraps to a sentinel of this package and to its cause.
type ShardError struct {
	Stream   string
	Shard    string
	Position lineage.Position
	Problem  string
	Remedy   string
	Sentinel error
	Err      error // or nil
}

func (e *ShardError) Error() string {
	text := fmt.Sprintf("kinesis: stream %q shard %s %s: %s", e.Stream, e.Shard, e.Position, e.Problem)
	if e.Err != nil {
		text += " (" + brief(e.Err) + ")"
	}
	return text + ": " + e.Remedy
}

// Unwrap returns the sentinel and the cause.
func (e *ShardError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Sentinel}
	}
	return []error{e.Sentinel, e.Err}
}
