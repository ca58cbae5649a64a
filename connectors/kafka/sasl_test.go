package kafka

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/sdk"
)

func TestLoginsSayEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]SASL{
		`mechanism "GSSAPI": use one of`:    {Mechanism: "GSSAPI"},
		"user is missing":                   {Mechanism: Plain, Password: "p"},
		"password is missing":               {Mechanism: ScramSHA256, User: "u"},
		"token is not for SCRAM-SHA-512":    {Mechanism: ScramSHA512, User: "u", Password: "p", Token: "t"},
		"either token or token_file":        {Mechanism: OAuthBearer, Token: "t", TokenFile: "f"},
		"user is not for OAUTHBEARER":       {Mechanism: OAuthBearer, Token: "t", User: "u"},
		"secret_access_key belong together": {Mechanism: AWSMSKIAM, AccessKeyID: "a"},
		"session_token to both":             {Mechanism: AWSMSKIAM, SessionToken: "s"},
	} {
		if text := errors.Join(s.validate()...); text == nil || !strings.Contains(text.Error(), want) {
			t.Errorf("%s: %v, want %q", s, text, want)
		}
	}
	for _, s := range []SASL{
		{Mechanism: Plain, User: "u", Password: "p"},
		{Mechanism: OAuthBearer, TokenFile: "f"},
		{Mechanism: AWSMSKIAM},
		{Mechanism: AWSMSKIAM, AccessKeyID: "a", SecretAccessKey: "s", SessionToken: "t"},
	} {
		if problems := s.validate(); len(problems) > 0 {
			t.Errorf("%s: %v", s, problems)
		}
	}
}

func TestNoWayToPrintALoginShowsASecret(t *testing.T) {
	t.Parallel()
	s := SASL{Mechanism: Plain, User: "bob", Password: "hush1", Token: "hush2", SecretAccessKey: "hush3", SessionToken: "hush4"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, v := range []any{s, &s, struct{ SASL *SASL }{&s}} {
			if text := fmt.Sprintf(format, v); strings.Contains(text, "hush") {
				t.Errorf("%s of a %T: %s", format, v, text)
			}
		}
	}
}

func TestAWSKeysComeFromTheConfigurationOrFromTheEnvironment(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	t.Setenv("AWS_SESSION_TOKEN", "token")
	auth, err := (&SASL{Mechanism: AWSMSKIAM}).awsKeys()
	if err != nil || auth.AccessKey != "id" || auth.SecretKey != "key" || auth.SessionToken != "token" {
		t.Errorf("from the environment: %+v, error %v", auth, err)
	}
	auth, err = (&SASL{Mechanism: AWSMSKIAM, AccessKeyID: "mine", SecretAccessKey: "own"}).awsKeys()
	if err != nil || auth.AccessKey != "mine" || auth.SecretKey != "own" || auth.SessionToken != "" {
		t.Errorf("configured: %+v, error %v", auth, err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	var missing *OptionError
	if _, err := (&SASL{Mechanism: AWSMSKIAM}).awsKeys(); !errors.As(err, &missing) || missing.Option != "sasl.access_key_id" {
		t.Errorf("without keys: %v", err)
	}
}

func TestAFileThatCannotBeUsedIsNamedBeforeAnythingConnects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		tls    TLS
		option string
		says   string
	}{
		{TLS{CAFile: filepath.Join(dir, "nothing")}, "tls.ca_file", "no such file"},
		{TLS{CAFile: empty}, "tls.ca_file", "no certificate in PEM"},
		{TLS{CertFile: empty, KeyFile: empty}, "tls.cert_file", empty},
	} {
		s := Source{Brokers: []string{"127.0.0.1:1"}, Topics: []string{"orders"}, TLS: &test.tls}
		err := s.Probe(t.Context())
		says(t, err, sdk.ErrFatal, test.option+": ", test.says)
		var e *OptionError
		if !errors.As(err, &e) || e.Option != test.option {
			t.Errorf("%v is not an error of %s", err, test.option)
		}
	}
}
