package kafka

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// errTLSPort says that what answered a client without TLS was a record of TLS.
var errTLSPort = errors.New("the port speaks TLS, and this client does not")

// plainDialer connects without TLS, and recognises a port that expects it: what answers there is an alert, which the client would take for
// the size of an absurdly large response.
func plainDialer(timeout time.Duration) kgo.Opt {
	dialer := net.Dialer{Timeout: timeout}
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err //nolint:wrapcheck // the client looks at it
		}
		return &plainConn{Conn: conn}, nil
	})
}

// plainConn looks at the first bytes that come. Only the client's reader reads from it.
type plainConn struct {
	net.Conn
	looked bool
}

// What a TLS alert begins with: its content type and the major version.
const (
	alertType  = 0x15
	alertMajor = 0x03
)

// Read implements [net.Conn].
func (c *plainConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.looked && n > 0 {
		c.looked = true
		if n > 1 && b[0] == alertType && b[1] == alertMajor {
			return 0, errTLSPort
		}
	}
	return n, err //nolint:wrapcheck // the client looks at it
}
