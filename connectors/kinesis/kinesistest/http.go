package kinesistest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	targetPrefix = "Kinesis_20131202."
	contentType  = "application/x-amz-json-1.1"
	// maxBody holds the largest PutRecords call in base64.
	maxBody = 2 * batchBytes
)

// ServeHTTP serves one request. A server may so be mounted in another one.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.clock.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("X-Amzn-Requestid", rand.Text())
	operation, req, err := s.decode(w, r)
	if err != nil {
		s.refuse(w, Call{Operation: operation, At: s.clock.Now()}, err)
		return
	}
	call := Call{Operation: operation, Target: req.target(s), At: s.clock.Now()}
	fault := s.faults.take(&call)
	effect := &fault.fault.Effect
	call.Fault = effect.name
	if effect.before != nil {
		if err := effect.before(r.Context(), s, fault); err != nil {
			s.refuse(w, call, err)
			return
		}
	}
	answer, err := s.serve(req, effect)
	if err != nil {
		s.refuse(w, call, err)
		return
	}
	if sub, ok := answer.(*subscription); ok {
		s.observe(call)
		if err := s.push(r.Context(), w, call, sub); err != nil {
			abort()
		}
		return
	}
	s.answer(w, call, answer, effect)
}

// abort closes the connection from within a handler, which net/http has a panic of its own for.
func abort() { panic(http.ErrAbortHandler) }

// decode reads a request.
func (s *Server) decode(w http.ResponseWriter, r *http.Request) (string, request, error) {
	operation, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	if r.Method != http.MethodPost || !ok {
		return "", nil, fail(unknownOperation, "want a POST with an X-Amz-Target that begins with %s", targetPrefix)
	}
	if got := r.Header.Get("Content-Type"); got != contentType {
		return operation, nil, fail(malformed, "Content-Type %q: this server speaks %s only; other SDKs switch to it with an option against CBOR", clip(got), contentType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return operation, nil, fail(validation, "the request has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return operation, nil, fail(malformed, "the request cannot be read: %v", err)
	}
	req, err := decodeRequest(operation, body)
	return operation, req, err
}

func decodeRequest(operation string, body []byte) (request, error) {
	build := operations[operation]
	if build == nil {
		return nil, fail(unknownOperation, "operation %q is not known here", clip(operation))
	}
	req := build()
	if err := json.Unmarshal(body, req); err != nil {
		return nil, fail(malformed, "the request is not what %s takes: %v", operation, err)
	}
	return req, nil
}

// serve does what a request asks for.
func (s *Server) serve(req request, effect *Effect) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return effect.apply(s, req)
}

// observe counts a call whose answer is known.
func (s *Server) observe(call Call) {
	s.mu.Lock()
	s.mu.calls[call.Operation]++
	s.mu.Unlock()
	if s.options.Observe != nil {
		s.options.Observe(call)
	}
}

func (s *Server) answer(w http.ResponseWriter, call Call, answer any, effect *Effect) {
	body, err := effect.encode(answer)
	if err != nil {
		s.refuse(w, call, err)
		return
	}
	s.observe(call)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	switch effect.send {
	case whole, corrupt, over:
		_, _ = w.Write(body) // the client may have gone
	case half:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		abort()
	case lost:
		abort()
	}
}

// refuse answers with an error, or not at all when err says so.
func (s *Server) refuse(w http.ResponseWriter, call Call, err error) {
	if errors.Is(err, errAbort) {
		s.observe(call)
		abort()
	}
	refused := asAPIError(err)
	call.Error = string(refused.Code)
	s.observe(call)
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(refused.status)
	_ = json.NewEncoder(w).Encode(refused) // the client may have gone
}

// unmarshalNumbers keeps numbers as they are written.
func unmarshalNumbers(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
