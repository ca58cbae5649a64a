package kinesistest

import (
	"errors"
	"fmt"
	"net/http"
)

// code is the name of an error as the service writes it.
type code string

const (
	accessDenied       code = "AccessDeniedException"
	expiredIterator    code = "ExpiredIteratorException"
	expiredToken       code = "ExpiredNextTokenException"
	internalFailure    code = "InternalFailure"
	invalidArgument    code = "InvalidArgumentException"
	limitExceeded      code = "LimitExceededException"
	throughputExceeded code = "ProvisionedThroughputExceededException"
	resourceInUse      code = "ResourceInUseException"
	notFound           code = "ResourceNotFoundException"
	malformed          code = "SerializationException"
	unknownOperation   code = "UnknownOperationException"
	validation         code = "ValidationException"
)

// apiError is an answer that is not a success.
type apiError struct {
	Code    code   `json:"__type"`
	Message string `json:"message"`
	status  int
}

func (e *apiError) Error() string { return string(e.Code) + ": " + e.Message }

func fail(c code, format string, args ...any) *apiError {
	e := &apiError{Code: c, Message: fmt.Sprintf(format, args...), status: http.StatusBadRequest}
	if c == internalFailure {
		e.status = http.StatusInternalServerError
	}
	return e
}

// asAPIError returns err as an answer; what is none is a fault of this package.
func asAPIError(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	return fail(internalFailure, "%v", err)
}
