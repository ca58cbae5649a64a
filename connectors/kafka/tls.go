package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS makes clients encrypt, and says whom they trust and who they are. The zero value trusts the authorities of the system. Files
// are read when a client is made.
type TLS struct {
	// CAFile holds certificates in PEM of the authorities to trust, in place of the system's.
	CAFile string
	// CertFile and KeyFile hold this client's certificate (with its chain) and private key in PEM, for brokers that ask for
	// one. Both or none.
	CertFile, KeyFile string
	// ServerName is the name that the brokers' certificates must be for, when that is not the host of their address.
	ServerName string
	// InsecureSkipVerify trusts whoever answers. Everything that is sent, passwords included, may then be read by somebody in
	// between: for tests only.
	InsecureSkipVerify bool
}

// validate reports what is wrong without reading a file.
func (t *TLS) validate() (problems []error) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		problems = append(problems, errors.New("tls: cert_file and key_file belong together: give both, or none"))
	}
	if t.InsecureSkipVerify && (t.CAFile != "" || t.ServerName != "") {
		problems = append(problems, errors.New("tls: insecure_skip_verify checks nothing: leave it out, or ca_file and server_name"))
	}
	return problems
}

// config reads the files.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.InsecureSkipVerify} //nolint:gosec // the user asked for it, by that name
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, &OptionError{"tls.ca_file", err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &OptionError{"tls.ca_file", fmt.Errorf("%s holds no certificate in PEM (-----BEGIN CERTIFICATE-----)", t.CAFile)}
		}
	}
	if t.CertFile != "" {
		own, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, &OptionError{"tls.cert_file", fmt.Errorf("%s with key_file %s: %w", t.CertFile, t.KeyFile, err)}
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
