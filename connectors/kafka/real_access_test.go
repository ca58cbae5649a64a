package kafka

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
)

// realClient is a client of the listener that may do everything.
func realClient(t testing.TB, server *kafkaserver.Server) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(server.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func createTopic(t testing.TB, client *kgo.Client, topic string, partitions int32, replicas int16, settings map[string]*string) {
	t.Helper()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, replicas, settings, topic); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, client *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// login is a server with every way in, and topics that everybody may read who gets in.
type login struct {
	server *kafkaserver.Server
	client *kgo.Client
}

func startLogin(t *testing.T) login {
	t.Helper()
	server := kafkaserver.Start(t, kafkaserver.Options{Users: map[string]string{"bob": "bob-secret"}, OAuth: true, TLS: true, ACLs: true})
	l := login{server, realClient(t, server)}
	l.password(t, "alice", "alice-secret")
	for _, topic := range []string{"orders", "changes"} {
		createTopic(t, l.client, topic, 1, 1, nil)
		write(t, l.client, numbered(topic, 0, 0, 5)...)
	}
	l.grant(t)
	return l
}

// grant lets everybody read the topics and use one group.
func (l login) grant(t *testing.T) {
	t.Helper()
	granted, err := kadm.NewClient(l.client).CreateACLs(t.Context(), kadm.NewACLs().Topics("orders", "changes").Groups("observers").
		ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead, kadm.OpDescribe).Allow("User:*").AllowHosts("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range granted {
		if g.Err != nil {
			t.Fatal(g.Err)
		}
	}
}

// password makes a user for SCRAM, or changes the password of one.
func (l login) password(t *testing.T, user, password string) {
	t.Helper()
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // a request names a user once
		altered, err := kadm.NewClient(l.client).AlterUserSCRAMs(t.Context(), nil,
			[]kadm.UpsertSCRAM{{User: user, Mechanism: mechanism, Iterations: 4096, Password: password}})
		if err == nil {
			err = altered.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The controller has it; the broker learns of it a little later.
	client, err := kgo.NewClient(kgo.SeedBrokers(l.server.ListenerAddrs(kafkaserver.SASLPlaintext)...),
		kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	limit := time.After(30 * time.Second)
	for err := client.Ping(t.Context()); err != nil; err = client.Ping(t.Context()) {
		select {
		case <-limit:
			t.Fatalf("the broker does not know the password of %s: %v", user, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l login) source(listener kafkaserver.Listener) *Source {
	return &Source{Brokers: l.server.ListenerAddrs(listener), Topics: []string{"orders"}, FetchMaxWait: 50 * time.Millisecond}
}

func (l login) trust() *TLS { return &TLS{CAFile: l.server.Authority().CAFile()} }

func TestRealLogins(t *testing.T) {
	t.Parallel()
	l := startLogin(t)
	t.Run("every way in reads", func(t *testing.T) { t.Parallel(); everyWayIn(t, l) })
	t.Run("every wrong way is named", func(t *testing.T) { t.Parallel(); everyWrongWay(t, l) })
	t.Run("a token file is read at every login", func(t *testing.T) { t.Parallel(); tokenFile(t, l) })
	t.Run("a changed password is a named state while reading", func(t *testing.T) { t.Parallel(); changedPassword(t, l) })
	t.Run("a group without permission is named at the start", func(t *testing.T) { t.Parallel(); forbiddenGroup(t, l) })
}

func everyWayIn(t *testing.T, l login) {
	authority := l.server.Authority()
	mutual := l.trust()
	mutual.CertFile, mutual.KeyFile = authority.ClientCertFile(), authority.ClientKeyFile()
	token := kafkaserver.UnsignedToken("carol", time.Now().Add(time.Hour))
	for name, test := range map[string]struct {
		listener kafkaserver.Listener
		tls      *TLS
		sasl     *SASL
	}{
		"plain text":         {kafkaserver.Plaintext, nil, nil},
		"TLS":                {kafkaserver.TLS, l.trust(), nil},
		"TLS, not verified":  {kafkaserver.TLS, &TLS{InsecureSkipVerify: true}, nil},
		"client certificate": {kafkaserver.MutualTLS, mutual, nil},
		"PLAIN":              {kafkaserver.SASLPlaintext, nil, &SASL{Mechanism: Plain, User: "bob", Password: "bob-secret"}},
		"SCRAM-SHA-256":      {kafkaserver.SASLPlaintext, nil, &SASL{Mechanism: ScramSHA256, User: "alice", Password: "alice-secret"}},
		"SCRAM-SHA-512, TLS": {kafkaserver.SASLTLS, l.trust(), &SASL{Mechanism: ScramSHA512, User: "alice", Password: "alice-secret"}},
		"OAUTHBEARER":        {kafkaserver.SASLTLS, l.trust(), &SASL{Mechanism: OAuthBearer, Token: token}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := l.source(test.listener)
			s.TLS, s.SASL = test.tls, test.sasl
			if err := probe(t, s); err != nil {
				t.Fatal(err)
			}
			if got := read(t, s, splitsOf(t, s)...).records(5); len(got) != 5 {
				t.Errorf("read %d", len(got))
			}
		})
	}
}

func everyWrongWay(t *testing.T, l login) {
	elsewhere := l.trust()
	elsewhere.ServerName = "elsewhere.example"
	alice := func(password string) *SASL { return &SASL{Mechanism: ScramSHA512, User: "alice", Password: password} }
	for name, test := range map[string]struct {
		listener kafkaserver.Listener
		tls      *TLS
		sasl     *SASL
		trouble  Trouble
		option   string
		says     []string
	}{
		"wrong password": {kafkaserver.SASLPlaintext, nil, alice("guess"), LoginRefused, "sasl", []string{`user "alice"`, "SCRAM-SHA-512"}},
		"wrong password of PLAIN": {
			kafkaserver.SASLPlaintext, nil, &SASL{Mechanism: Plain, User: "bob", Password: "guess"}, LoginRefused, "sasl",
			[]string{`user "bob"`, "PLAIN"},
		},
		"no login where one is needed": {kafkaserver.SASLPlaintext, nil, nil, ClosedAtOnce, "brokers", []string{"SASL"}},
		"a login where none is taken":  {kafkaserver.Plaintext, nil, alice("alice-secret"), LoginRefused, "sasl", []string{"leave sasl out"}},
		"expired token": {
			kafkaserver.SASLPlaintext, nil, &SASL{Mechanism: OAuthBearer, Token: kafkaserver.UnsignedToken("carol", time.Now().Add(-time.Hour))},
			LoginRefused, "sasl",
			[]string{"OAUTHBEARER"},
		},
		"missing token file":     {kafkaserver.SASLPlaintext, nil, &SASL{Mechanism: OAuthBearer, TokenFile: "/nowhere/token"}, NoCredentials, "sasl.token_file", []string{"/nowhere/token"}},
		"unknown authority":      {kafkaserver.TLS, &TLS{}, nil, UntrustedAuthority, "tls.ca_file", nil},
		"another name":           {kafkaserver.TLS, elsewhere, nil, OtherName, "tls.server_name", nil},
		"TLS to a plain port":    {kafkaserver.Plaintext, &TLS{}, nil, ClosedAtOnce, "brokers", []string{"TLS"}},
		"no client certificate":  {kafkaserver.MutualTLS, l.trust(), nil, HandshakeFailed, "tls.cert_file", []string{"client certificate"}},
		"plain text to TLS port": {kafkaserver.TLS, nil, nil, ExpectsTLS, "tls", []string{"set tls"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := l.source(test.listener)
			s.TLS, s.SASL = test.tls, test.sasl
			err := probe(t, s)
			says(t, err, nil, append(test.says, s.Brokers[0])...)
			e := connectionErrorIn(t, err)
			if e.Trouble != test.trouble || e.Option != test.option {
				t.Errorf("%s, option %s; want %s, %s: %v", e.Trouble, e.Option, test.trouble, test.option, err)
			}
			if test.sasl != nil && test.sasl.Password != "" && strings.Contains(err.Error(), test.sasl.Password) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func tokenFile(t *testing.T, l login) {
	path := filepath.Join(t.TempDir(), "token")
	s := l.source(kafkaserver.SASLPlaintext)
	s.SASL = &SASL{Mechanism: OAuthBearer, TokenFile: path}
	for _, test := range []struct {
		expires time.Duration
		works   bool
	}{{-time.Hour, false}, {time.Hour, true}} {
		if err := os.WriteFile(path, []byte(kafkaserver.UnsignedToken("carol", time.Now().Add(test.expires))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := probe(t, s); (err == nil) != test.works {
			t.Errorf("a token that expires in %s: %v", test.expires, err)
		}
	}
}

// cutter is a dialer whose connections the test can break.
type cutter struct{ conns chan net.Conn }

func (c cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		select {
		case c.conns <- conn:
		default:
		}
	}
	return conn, err
}

func (c cutter) cut(t *testing.T) {
	t.Helper()
	for {
		select {
		case conn := <-c.conns:
			_ = conn.Close() // some have ended by themselves
		default:
			return
		}
	}
}

func changedPassword(t *testing.T, l login) {
	l.password(t, "dave", "before")
	c := cutter{make(chan net.Conn, 1000)}
	s := l.source(kafkaserver.SASLPlaintext)
	s.Topics = []string{"changes"}
	s.SASL = &SASL{Mechanism: ScramSHA512, User: "dave", Password: "before"}
	s.Client = []kgo.Opt{kgo.Dialer(c.dial)}
	u := read(t, s, splitsOf(t, s)...)
	u.records(5)
	l.password(t, "dave", "after")
	c.cut(t)
	u.awaitMetric("brokers_refusing_login", func(v float64, _ bool) bool { return v > 0 })
	errorsBefore := u.metric("broker_errors")
	l.password(t, "dave", "before")
	u.awaitMetric("brokers_refusing_login", func(v float64, _ bool) bool { return v == 0 })
	write(t, l.client, numbered("changes", 0, 5, 1)...)
	u.records(6)
	if n := u.metric("broker_errors"); n > errorsBefore+100 {
		t.Errorf("%v errors: a hot loop", n)
	}
}

func forbiddenGroup(t *testing.T, l login) {
	s := l.source(kafkaserver.SASLPlaintext)
	s.SASL = &SASL{Mechanism: Plain, User: "bob", Password: "bob-secret"}
	s.CommitGroup = "observers"
	if err := probe(t, s); err != nil {
		t.Errorf("a group that may be used: %v", err)
	}
	s.CommitGroup = "of-others"
	says(t, probe(t, s), ErrGroup, "commit_group", `"of-others"`, `user "bob"`, "READ on the group")
}
