package realtest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

// secured starts a server with every way in, and a topic with a record that alice (SCRAM), bob (PLAIN), carol (OAUTHBEARER) and the
// client's certificate may read.
func secured(t *testing.T) (c *cluster, topic string) {
	t.Helper()
	server := kafkaserver.Start(t, kafkaserver.Options{Users: map[string]string{"bob": "bob-secret", "eve": "eve-secret"}, OAuth: true, TLS: true, ACLs: true})
	must(t, server.SetSCRAM(t.Context(), "alice", "alice-secret"))
	c = clusterOf(t, server)
	topic = c.topic(1, 1)
	c.write(numbered(topic, 0, 1)...)
	acls := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead, kadm.OpDescribe).
		Allow("User:alice", "User:bob", "User:carol", "User:CN=client", "User:ANONYMOUS").AllowHosts()
	created, err := c.admin.CreateACLs(t.Context(), acls)
	must(t, err)
	for _, one := range created {
		must(t, one.Err)
	}
	return c, topic
}

func TestEveryWayToLogInReadsAndARefusedWayToTheClusterIsNamedWithinSeconds(t *testing.T) {
	t.Parallel()
	c, topic := secured(t)
	authority := c.server.Authority()
	other, err := kafkaserver.NewAuthority(filepath.Join(t.TempDir(), "other"))
	must(t, err)
	trusting := &kafka.TLS{CAFile: authority.CAFile()}
	login := func(m kafka.Mechanism, user, password string) *kafka.SASL {
		return &kafka.SASL{Mechanism: m, User: user, Password: password}
	}
	token := &kafka.SASL{Mechanism: kafka.OAuthBearer, Token: kafkaserver.UnsignedToken("carol", time.Now().Add(time.Hour))}
	for name, way := range map[string]struct {
		listener kafkaserver.Listener
		tls      *kafka.TLS
		sasl     *kafka.SASL
		refused  error
	}{
		"PLAIN":         {kafkaserver.SASLPlaintext, nil, login(kafka.Plain, "bob", "bob-secret"), nil},
		"SCRAM-SHA-256": {kafkaserver.SASLPlaintext, nil, login(kafka.ScramSHA256, "alice", "alice-secret"), nil},
		"SCRAM-SHA-512": {kafkaserver.SASLTLS, trusting, login(kafka.ScramSHA512, "alice", "alice-secret"), nil},
		"OAUTHBEARER":   {kafkaserver.SASLTLS, trusting, token, nil},
		"TLS":           {kafkaserver.TLS, trusting, nil, nil},
		"mutual TLS": {kafkaserver.MutualTLS, &kafka.TLS{
			CAFile: authority.CAFile(), CertFile: authority.ClientCertFile(), KeyFile: authority.ClientKeyFile(),
		}, nil, nil},
		"a wrong password":         {kafkaserver.SASLPlaintext, nil, login(kafka.ScramSHA512, "alice", "no"), kafka.ErrLogin},
		"an unknown user":          {kafkaserver.SASLTLS, trusting, login(kafka.Plain, "mallory", "no"), kafka.ErrLogin},
		"a user without a right":   {kafkaserver.SASLPlaintext, nil, login(kafka.Plain, "eve", "eve-secret"), kafka.ErrLogin},
		"no login":                 {kafkaserver.SASLPlaintext, nil, nil, kafka.ErrUnreachable},
		"an unknown authority":     {kafkaserver.TLS, &kafka.TLS{CAFile: other.CAFile()}, nil, kafka.ErrUnreachable},
		"another name":             {kafkaserver.TLS, &kafka.TLS{CAFile: authority.CAFile(), ServerName: "elsewhere"}, nil, kafka.ErrUnreachable},
		"no client certificate":    {kafkaserver.MutualTLS, trusting, nil, kafka.ErrUnreachable},
		"plain text to a TLS port": {kafkaserver.TLS, nil, nil, kafka.ErrUnreachable},
		"TLS to a plain text port": {kafkaserver.Plaintext, trusting, nil, kafka.ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.source(topic)
			s.Brokers, s.TLS, s.SASL, s.Stop = c.server.ListenerAddrs(way.listener), way.tls, way.sasl, kafka.Latest()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			err := s.Probe(ctx)
			if !errors.Is(err, way.refused) {
				t.Fatalf("error %v, want %v", err, way.refused)
			}
			if way.refused != nil {
				t.Log(err)
				return
			}
			if got := run(t, s).end(); len(got) != 1 {
				t.Errorf("read %v", offsets(got))
			}
		})
	}
}
