package kinesis

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// detached sends requests with bodies of their own. The SDK closes the body of a request as soon as the answer is there. A transport that has
// not yet seen the end of the body, which it looks for after the last byte, then gives up the connection in the middle of the answer; near the
// service that is one request in a few dozen.
type detached struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (d detached) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return d.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	own := r.Clone(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(body))
	return d.RoundTripper.RoundTrip(own)
}
