package kafkaserver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

// secured starts a server with every listener there is.
func secured(t *testing.T) *kafkaserver.Server {
	t.Helper()
	s := kafkaserver.Start(t, kafkaserver.Options{
		Users: map[string]string{"bob": "bob-secret"}, OAuth: true, TLS: true, ACLs: true,
	})
	if err := s.SetSCRAM(t.Context(), "alice", "alice-secret"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryListenerAndMechanismLetsInWhoBelongsThereAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := secured(t)
	trusted, err := s.Authority().ClientTLS(false)
	if err != nil {
		t.Fatal(err)
	}
	known, err := s.Authority().ClientTLS(true)
	if err != nil {
		t.Fatal(err)
	}
	other, err := kafkaserver.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.ClientTLS(true)
	if err != nil {
		t.Fatal(err)
	}
	token := func(context.Context) (oauth.Auth, error) {
		return oauth.Auth{Token: kafkaserver.UnsignedToken("carol", time.Now().Add(time.Hour))}, nil
	}
	expired := func(context.Context) (oauth.Auth, error) {
		return oauth.Auth{Token: kafkaserver.UnsignedToken("carol", time.Now().Add(-time.Hour))}, nil
	}
	bob := kgo.SASL(plain.Auth{User: "bob", Pass: "bob-secret"}.AsMechanism())
	alice := scram.Auth{User: "alice", Pass: "alice-secret"}
	for name, c := range map[string]struct {
		listener kafkaserver.Listener
		in       bool
		options  []kgo.Opt
	}{
		"plain text":                          {kafkaserver.Plaintext, true, nil},
		"no login where one is wanted":        {kafkaserver.SASLPlaintext, false, nil},
		"PLAIN":                               {kafkaserver.SASLPlaintext, true, []kgo.Opt{bob}},
		"PLAIN with a wrong password":         {kafkaserver.SASLPlaintext, false, []kgo.Opt{kgo.SASL(plain.Auth{User: "bob", Pass: "no"}.AsMechanism())}},
		"SCRAM-SHA-256":                       {kafkaserver.SASLPlaintext, true, []kgo.Opt{kgo.SASL(alice.AsSha256Mechanism())}},
		"SCRAM-SHA-512":                       {kafkaserver.SASLPlaintext, true, []kgo.Opt{kgo.SASL(alice.AsSha512Mechanism())}},
		"SCRAM-SHA-512 with a wrong password": {kafkaserver.SASLPlaintext, false, []kgo.Opt{kgo.SASL(scram.Auth{User: "alice", Pass: "no"}.AsSha512Mechanism())}},
		"OAUTHBEARER":                         {kafkaserver.SASLPlaintext, true, []kgo.Opt{kgo.SASL(oauth.Oauth(token))}},
		"OAUTHBEARER with an expired token":   {kafkaserver.SASLPlaintext, false, []kgo.Opt{kgo.SASL(oauth.Oauth(expired))}},
		"TLS":                                 {kafkaserver.TLS, true, []kgo.Opt{kgo.DialTLSConfig(trusted)}},
		"TLS without trust":                   {kafkaserver.TLS, false, []kgo.Opt{kgo.DialTLSConfig(stranger)}},
		"plain text where TLS is wanted":      {kafkaserver.TLS, false, nil},
		"TLS and SASL":                        {kafkaserver.SASLTLS, true, []kgo.Opt{kgo.DialTLSConfig(trusted), bob}},
		"mutual TLS":                          {kafkaserver.MutualTLS, true, []kgo.Opt{kgo.DialTLSConfig(known)}},
		"mutual TLS without a certificate":    {kafkaserver.MutualTLS, false, []kgo.Opt{kgo.DialTLSConfig(trusted)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addrs := s.ListenerAddrs(c.listener)
			if len(addrs) != 1 {
				t.Fatalf("addresses of %s: %v", c.listener, addrs)
			}
			if err := pingErr(t, addrs, c.options...); (err == nil) != c.in {
				t.Errorf("let in: %t, want %t: %v", err == nil, c.in, err)
			}
		})
	}
}

func TestAWrongPasswordIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	s := secured(t)
	err := pingErr(t, s.ListenerAddrs(kafkaserver.SASLPlaintext), kgo.SASL(plain.Auth{User: "bob", Pass: "no"}.AsMechanism()))
	if !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("got %v", err)
	}
}

func pingErr(t *testing.T, addrs []string, options ...kgo.Opt) error {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addrs...), kgo.RequestRetries(0), kgo.DialTimeout(5*time.Second))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return client.Ping(ctx)
}
