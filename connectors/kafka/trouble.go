package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Trouble names why a broker cannot be used: the state that a running job logs and counts, and the kind of a [ConnectionError].
type Trouble string

// The troubles there are.
const (
	UnknownHost        Trouble = "unknown host"
	ConnectionRefused  Trouble = "connection refused"
	UntrustedAuthority Trouble = "untrusted certificate authority"
	OtherName          Trouble = "certificate for another name"
	HandshakeFailed    Trouble = "TLS handshake failed"
	ExpectsTLS         Trouble = "port expects TLS"
	LoginRefused       Trouble = "login refused"
	NoCredentials      Trouble = "nothing to log in with"
	ClosedAtOnce       Trouble = "connection closed at once"
	ConnectionLost     Trouble = "connection lost"
	NoAnswer           Trouble = "no answer"
	OtherTrouble       Trouble = "not usable"
)

// ConnectionError is an error of the way to the cluster, with what to do about it. It unwraps to [ErrLogin] or [ErrUnreachable]
// and to its cause.
type ConnectionError struct {
	Trouble Trouble
	// Option is the setting to look at first, as it is named in a job file: "brokers", "tls.ca_file".
	Option string
	// Login says as whom the client came; empty when it had not come that far.
	Login  string
	Remedy string
	Err    error
}

func (e *ConnectionError) Error() string {
	as := ""
	if e.Login != "" {
		as = " (" + e.Login + ")"
	}
	return fmt.Sprintf("%v: %v%s: %s", e.sentinel(), e.Err, as, e.Remedy)
}

func (e *ConnectionError) sentinel() error {
	if e.Trouble == LoginRefused || e.Trouble == NoCredentials {
		return ErrLogin
	}
	return ErrUnreachable
}

// Unwrap returns the sentinel and the cause.
func (e *ConnectionError) Unwrap() []error { return []error{e.sentinel(), e.Err} }

// unreachable explains an error of a request that got no answer. The end of ctx stays what it is, unless that was its time
// limit. login is what loginText says.
func unreachable(ctx context.Context, err error, login string) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return troubleOf(err, login)
}

// lost explains an error of the way to a broker that had been used before: what it expects of clients is then no longer a guess worth making.
func lost(err error, login string) *ConnectionError {
	e := troubleOf(err, login)
	if e.Trouble == ClosedAtOnce {
		return connectionLost(err)
	}
	return e
}

func connectionLost(err error) *ConnectionError {
	return &ConnectionError{Trouble: ConnectionLost, Option: "brokers", Err: err, Remedy: "the broker broke off a connection that had worked: was it stopped or killed? The client connects again by itself"}
}

// troubleOf finds out what is wrong from an error of the client.
func troubleOf(err error, login string) *ConnectionError {
	for _, explain := range []func(error) *ConnectionError{explainLogin, explainTLS, explainNetwork} {
		if e := explain(err); e != nil {
			e.Err = err
			if errors.Is(e.sentinel(), ErrLogin) || e.Trouble == ClosedAtOnce {
				e.Login = login
			}
			return e
		}
	}
	return &ConnectionError{Trouble: OtherTrouble, Option: "brokers", Remedy: "check brokers, and whether that port expects TLS or a login (SASL)", Err: err}
}

func explainLogin(err error) *ConnectionError {
	var missing *OptionError
	switch {
	case errors.As(err, &missing):
		return &ConnectionError{Trouble: NoCredentials, Option: missing.Option, Remedy: "put there what this client logs in with"}
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return &ConnectionError{Trouble: LoginRefused, Option: "sasl", Remedy: "check sasl: mechanism, user and password (or token, or keys); brokers do not say which of them is wrong"}
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return &ConnectionError{Trouble: LoginRefused, Option: "sasl.mechanism", Remedy: "the broker has not enabled that mechanism: use another sasl.mechanism"}
	case errors.Is(err, kerr.IllegalSaslState):
		return &ConnectionError{Trouble: LoginRefused, Option: "sasl", Remedy: "that port takes no login: leave sasl out, or use the port of another listener"}
	}
	return nil
}

func explainTLS(err error) *ConnectionError {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		record    tls.RecordHeaderError
		op        *net.OpError
	)
	switch {
	case errors.Is(err, errTLSPort):
		return &ConnectionError{Trouble: ExpectsTLS, Option: "tls", Remedy: "set tls (tls: {} trusts the authorities of this system), or use the port of another listener"}
	case errors.As(err, &authority):
		return &ConnectionError{Trouble: UntrustedAuthority, Option: "tls.ca_file", Remedy: "the broker's certificate is signed by an authority that is not trusted here: give its CA certificate in tls.ca_file"}
	case errors.As(err, &hostname):
		return &ConnectionError{Trouble: OtherName, Option: "tls.server_name", Remedy: "the broker's certificate is for another name: connect by that name, or set tls.server_name"}
	case errors.As(err, &invalid):
		return &ConnectionError{Trouble: HandshakeFailed, Option: "tls", Remedy: "the broker's certificate is not valid: is it expired, or is the clock here wrong?"}
	case errors.As(err, &alert), errors.As(err, &op) && op.Op == "remote error":
		return &ConnectionError{Trouble: HandshakeFailed, Option: "tls.cert_file", Remedy: "the broker broke off the TLS handshake: does it want a client certificate (tls.cert_file, tls.key_file) that it trusts?"}
	case errors.As(err, &record):
		return &ConnectionError{Trouble: HandshakeFailed, Option: "tls", Remedy: "what answers there speaks no TLS: leave tls out, or use the port of another listener"}
	}
	return nil
}

func explainNetwork(err error) *ConnectionError {
	var (
		dns       *net.DNSError
		firstRead *kgo.ErrFirstReadEOF
	)
	switch {
	case errors.As(err, &dns):
		return &ConnectionError{Trouble: UnknownHost, Option: "brokers", Remedy: fmt.Sprintf("host %q is not known here: correct brokers, or the listeners that the brokers advertise", dns.Name)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &ConnectionError{Trouble: ConnectionRefused, Option: "brokers", Remedy: "nobody listens there: is the broker running, and is the port right?"}
	case errors.As(err, &firstRead), errors.Is(err, syscall.ECONNRESET):
		return &ConnectionError{Trouble: ClosedAtOnce, Option: "brokers", Remedy: "the broker closed the connection at once: it expects TLS, or a login (SASL), that this client does not use, or the other way round, or it refuses the login without a word"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // in the first answer it would have been the type above
		return connectionLost(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return &ConnectionError{Trouble: NoAnswer, Option: "brokers", Remedy: "no answer in time: is the address right, does a firewall drop packets, does the broker hang, does only one side use TLS?"}
	}
	return nil
}
