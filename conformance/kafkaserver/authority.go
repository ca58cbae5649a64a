package kafkaserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Authority is a certificate authority made for one server, with a certificate of the brokers for "localhost" and 127.0.0.1 and one for a client.
// Keys are elliptic (P-256), certificates hold for a day.
type Authority struct {
	dir     string
	ca      *x509.Certificate
	key     *ecdsa.PrivateKey
	serials int64
}

// CAFile is the path of the authority's own certificate, in PEM.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, "ca.crt") }

// ClientCertFile is the path of a client's certificate, in PEM. Its subject is CN=client, which is also the user in ACLs.
func (a *Authority) ClientCertFile() string { return filepath.Join(a.dir, "client.crt") }

// ClientKeyFile is the path of the key of ClientCertFile, in PEM (PKCS #8).
func (a *Authority) ClientKeyFile() string { return filepath.Join(a.dir, "client.key") }

// ClientTLS is a configuration that trusts the brokers. With a certificate it also passes the MutualTLS listener.
func (a *Authority) ClientTLS(certificate bool) (*tls.Config, error) {
	roots := x509.NewCertPool()
	roots.AddCert(a.ca)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if certificate {
		pair, err := tls.LoadX509KeyPair(a.ClientCertFile(), a.ClientKeyFile())
		if err != nil {
			return nil, fmt.Errorf("kafkaserver: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// NewAuthority makes an authority and writes its files to a folder, which it makes. A second authority is what a client has that does not trust
// the brokers.
func NewAuthority(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("kafkaserver: %w", err)
	}
	a := &Authority{dir: dir, key: key}
	ca := a.template("penstock test authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("kafkaserver: %w", err)
	}
	if a.ca, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("kafkaserver: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("kafkaserver: %w", err)
	}
	if err := a.write("ca.crt", certificatePEM(der)); err != nil {
		return nil, err
	}
	broker := a.template("localhost")
	broker.DNSNames, broker.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	if err := a.issue("broker", broker); err != nil {
		return nil, err
	}
	if err := a.issue("client", a.template("client")); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Authority) template(name string) *x509.Certificate {
	a.serials++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serials),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// issue writes name.crt, name.key, and name.pem with both and the authority, as Kafka wants its key store.
func (a *Authority) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	crt := certificatePEM(der)
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	if err := a.write(name+".crt", crt); err != nil {
		return err
	}
	if err := a.write(name+".key", private); err != nil {
		return err
	}
	return a.write(name+".pem", append(append(private, crt...), certificatePEM(a.ca.Raw)...))
}

func (a *Authority) write(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(a.dir, name), data, 0o600); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	return nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// properties gives the brokers their certificate, and makes the MutualTLS listener ask clients for theirs.
func (a *Authority) properties(p map[string]string) {
	p["ssl.keystore.type"] = "PEM"
	p["ssl.keystore.location"] = filepath.Join(a.dir, "broker.pem")
	p["ssl.truststore.type"] = "PEM"
	p["ssl.truststore.location"] = a.CAFile()
	p["listener.name."+strings.ToLower(string(MutualTLS))+".ssl.client.auth"] = "required"
}
