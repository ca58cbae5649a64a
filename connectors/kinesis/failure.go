package kinesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// failure is what kind of thing went wrong with a call.
type failure uint8

const (
	unclear       failure = iota // worth another try
	throttled                    // too many calls, too many bytes
	expired                      // the iterator, or the token of a list
	missing                      // no such stream or shard
	inUse                        // the stream or consumer is being changed
	refused                      // an argument that the service does not take
	denied                       // not allowed
	unknownCaller                // the credentials are not usable
	unreachable                  // no answer
)

// Codes of errors that the SDK has no types for.
var (
	throttlingCodes = map[string]bool{"ThrottlingException": true, "Throttling": true, "RequestLimitExceeded": true, "TooManyRequestsException": true}
	callerCodes     = map[string]bool{
		"UnrecognizedClientException": true, "InvalidClientTokenId": true, "InvalidSignatureException": true, "SignatureDoesNotMatch": true,
		"ExpiredTokenException": true, "ExpiredToken": true, "MissingAuthenticationTokenException": true, "MissingAuthenticationToken": true,
		"IncompleteSignature": true, "IncompleteSignatureException": true,
	}
)

// failureOf classifies an error of the SDK.
func failureOf(err error) failure {
	if f, ok := typedFailure(err); ok {
		return f
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	response, hasResponse := errors.AsType[*smithyhttp.ResponseError](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isAPI && throttlingCodes[api.ErrorCode()]:
		return throttled
	case isAPI && callerCodes[api.ErrorCode()]:
		return unknownCaller
	case isAPI && api.ErrorCode() == "AccessDenied":
		return denied
	case hasResponse && response.HTTPStatusCode() == http.StatusTooManyRequests:
		return throttled
	case hasResponse && response.HTTPStatusCode() == http.StatusForbidden:
		return denied
	case isAPI, hasResponse && response.HTTPStatusCode() >= 400:
		return unclear // also InternalFailure and everything of 500
	case isNet, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unreachable
	default:
		return unclear
	}
}

func typedFailure(err error) (failure, bool) {
	for _, t := range []struct {
		is   bool
		kind failure
	}{
		{is[*types.ProvisionedThroughputExceededException](err) || is[*types.LimitExceededException](err) || is[*types.KMSThrottlingException](err), throttled},
		{is[*types.ExpiredIteratorException](err) || is[*types.ExpiredNextTokenException](err), expired},
		{is[*types.ResourceNotFoundException](err), missing},
		{is[*types.ResourceInUseException](err), inUse},
		{is[*types.InvalidArgumentException](err) || is[*types.ValidationException](err), refused},
		{is[*types.AccessDeniedException](err) || is[*types.KMSAccessDeniedException](err) || is[*types.KMSDisabledException](err) || is[*types.KMSNotFoundException](err) || is[*types.KMSInvalidStateException](err) || is[*types.KMSOptInRequired](err), denied},
	} {
		if t.is {
			return t.kind, true
		}
	}
	return unclear, false
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// explain turns an error of a call into one for people. The end of ctx stays what it is, unless that was its time limit.
func (v *service) explain(ctx context.Context, operation string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	e := &ServiceError{Operation: operation, Stream: v.source.name(), Err: err}
	switch failureOf(err) {
	case missing:
		e.Sentinel, e.Option = ErrStreamMissing, "stream"
		e.Remedy = fmt.Sprintf("check the name and the region (%s), and that these credentials belong to the stream's account; a stream of another account is named with stream_arn", v.client.Options().Region)
	case denied:
		e.Sentinel, e.Option = ErrAccess, "credentials"
		e.Remedy = "allow kinesis:" + operation + " on the stream (docs/en/kinesis.md has the whole policy), and kms:Decrypt on its key when it is encrypted with one of yours"
	case unknownCaller:
		e.Sentinel, e.Option, e.Remedy = ErrCredentials, "credentials", "the service does not accept these credentials: are they expired, of another partition, or is the clock here wrong?"
	case unreachable:
		e.Sentinel, e.Option = ErrUnreachable, "endpoint"
		e.Remedy = "nobody answered there: check the endpoint, the region, and the way to it (proxy, firewall, private endpoint)"
		if v.source.Endpoint == "" {
			e.Option = "region"
		}
	case refused:
		e.Sentinel, e.Option, e.Remedy = errService, "stream", "an argument is not what the service takes"
	case throttled, expired, inUse, unclear:
		e.Sentinel, e.Option, e.Remedy = errService, "", "it is tried again"
	}
	return e
}

// errService is the sentinel of what has no name of its own.
var errService = errors.New("kinesis: the service answered with an error")
