package realtest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock-dev/penstock/conformance/kafkaserver"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

const (
	keyID    = "test"
	audience = "cluster" // what tokens for this cluster are for
	issuer   = "https://identity.example"
)

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return base64.RawURLEncoding.EncodeToString(data)
}

// signedToken is a token as an identity provider issues them.
func signedToken(t *testing.T, key *rsa.PrivateKey, aud string, expires time.Time) string {
	t.Helper()
	text := encoded(t, map[string]any{"alg": "RS256", "typ": "JWT", "kid": keyID}) + "." +
		encoded(t, map[string]any{"sub": "carol", "iss": issuer, "aud": aud, "iat": time.Now().Unix(), "exp": expires.Unix(), "scope": "kafka"})
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	must(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// A broker as it is used: it takes tokens that were signed with a key of a published set, and no others.
func TestSignedTokensOfOAUTHBEARERAreTakenAndThoseOfOthersNamed(t *testing.T) { // not parallel: it sets the environment of the server
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID,
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
	}}})
	must(t, err)
	path := filepath.Join(t.TempDir(), "keys.json")
	must(t, os.WriteFile(path, set, 0o600))
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://"+path)
	server := kafkaserver.Start(t, kafkaserver.Options{OAuth: true, Properties: map[string]string{
		"sasl.oauthbearer.jwks.endpoint.url":                                          "file://" + path,
		"sasl.oauthbearer.expected.audience":                                          audience,
		"sasl.oauthbearer.expected.issuer":                                            issuer,
		"listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
		"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config":                   "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
	}})
	c := clusterOf(t, server)
	topic := c.topic(1, 1)
	c.write(numbered(topic, 0, 3)...)
	for name, one := range map[string]struct {
		token string
		works bool
	}{
		"signed":                {signedToken(t, key, audience, time.Now().Add(time.Hour)), true},
		"for another cluster":   {signedToken(t, key, "elsewhere", time.Now().Add(time.Hour)), false},
		"expired":               {signedToken(t, key, audience, time.Now().Add(-time.Hour)), false},
		"signed by another key": {signedToken(t, other, audience, time.Now().Add(time.Hour)), false},
		"not signed":            {kafkaserver.UnsignedToken("carol", time.Now().Add(time.Hour)), false},
	} {
		t.Run(name, func(t *testing.T) {
			source := c.source(topic)
			source.Brokers = server.ListenerAddrs(kafkaserver.SASLPlaintext)
			source.SASL = &kafka.SASL{Mechanism: kafka.OAuthBearer, Token: one.token}
			if !one.works {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				says(t, source.Probe(ctx), kafka.ErrLogin, "OAUTHBEARER")
				return
			}
			source.Stop = kafka.Latest()
			if got := run(t, source).end(); len(got) != 3 {
				t.Errorf("read %d records", len(got))
			}
		})
	}
}
