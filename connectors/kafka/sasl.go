package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Mechanism is a way to log in, by the name that Kafka gives it.
type Mechanism string

// The mechanisms of [SASL].
const (
	// Plain sends user and password as they are: only with TLS.
	Plain Mechanism = "PLAIN"
	// ScramSHA256 and ScramSHA512 prove that both sides know the password.
	ScramSHA256 Mechanism = "SCRAM-SHA-256"
	ScramSHA512 Mechanism = "SCRAM-SHA-512"
	// OAuthBearer sends a token.
	OAuthBearer Mechanism = "OAUTHBEARER"
	// AWSMSKIAM signs with AWS credentials; for Amazon MSK, with TLS.
	AWSMSKIAM Mechanism = "AWS_MSK_IAM"
)

// Mechanisms lists them all.
func Mechanisms() []Mechanism {
	return []Mechanism{Plain, ScramSHA256, ScramSHA512, OAuthBearer, AWSMSKIAM}
}

// SASL is a login. Which fields are used depends on the mechanism; the others stay empty. Its text never holds a secret.
type SASL struct {
	Mechanism Mechanism
	// User and Password are for PLAIN and SCRAM.
	User, Password string
	// Token or TokenFile is for OAUTHBEARER. The file is read at every login, so whatever renews it renews the login.
	Token, TokenFile string
	// AccessKeyID, SecretAccessKey and, for temporary credentials, SessionToken are for AWS_MSK_IAM. Without them the environment
	// variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN are read at every login. The region is
	// that of the broker's name, or AWS_REGION.
	AccessKeyID, SecretAccessKey, SessionToken string
}

// String names the mechanism and, where there is one, the user.
func (s SASL) String() string {
	switch {
	case s.User != "":
		return fmt.Sprintf("mechanism %s, user %q", s.Mechanism, s.User)
	case s.AccessKeyID != "":
		return fmt.Sprintf("mechanism %s, access key id %q", s.Mechanism, s.AccessKeyID)
	case s.TokenFile != "":
		return fmt.Sprintf("mechanism %s, token file %s", s.Mechanism, s.TokenFile)
	default:
		return fmt.Sprintf("mechanism %s", s.Mechanism)
	}
}

// GoString is String, so that no way to print a value shows a secret.
func (s SASL) GoString() string { return "kafka.SASL{" + s.String() + "}" }

// saslField is one setting of a login, with the mechanisms that use it.
type saslField struct {
	name  string
	given bool
	of    []Mechanism
}

func (s *SASL) fields() []saslField {
	password := []Mechanism{Plain, ScramSHA256, ScramSHA512}
	token, key := []Mechanism{OAuthBearer}, []Mechanism{AWSMSKIAM}
	return []saslField{
		{"user", s.User != "", password},
		{"password", s.Password != "", password},
		{"token", s.Token != "", token},
		{"token_file", s.TokenFile != "", token},
		{"access_key_id", s.AccessKeyID != "", key},
		{"secret_access_key", s.SecretAccessKey != "", key},
		{"session_token", s.SessionToken != "", key},
	}
}

// validate reports what is wrong without reading a file or the environment.
func (s *SASL) validate() (problems []error) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Errorf("sasl: "+format, args...)) }
	if !slices.Contains(Mechanisms(), s.Mechanism) {
		say("mechanism %q: use one of %v", string(s.Mechanism), Mechanisms())
		return problems
	}
	given := make(map[string]bool)
	for _, f := range s.fields() {
		given[f.name] = f.given
		if f.given && !slices.Contains(f.of, s.Mechanism) {
			say("%s is not for %s: remove it", f.name, s.Mechanism)
		}
	}
	switch s.Mechanism {
	case Plain, ScramSHA256, ScramSHA512:
		for _, name := range []string{"user", "password"} {
			if !given[name] {
				say("%s is missing: %s needs it", name, s.Mechanism)
			}
		}
	case OAuthBearer:
		if given["token"] == given["token_file"] {
			say("%s needs either token or token_file", s.Mechanism)
		}
	case AWSMSKIAM:
		if given["access_key_id"] != given["secret_access_key"] || given["session_token"] && !given["access_key_id"] {
			say("access_key_id and secret_access_key belong together, and session_token to both: give them, or none of them to use the environment")
		}
	}
	return problems
}

// mechanism is what the client uses. What may change between logins is read at each.
func (s *SASL) mechanism() sasl.Mechanism {
	switch s.Mechanism {
	case Plain:
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()
	case ScramSHA256:
		return scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()
	case OAuthBearer:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := s.token()
			return oauth.Auth{Token: token}, err
		})
	case AWSMSKIAM:
		return aws.ManagedStreamingIAM(func(context.Context) (aws.Auth, error) { return s.awsKeys() })
	case ScramSHA512:
	}
	return scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()
}

// maxToken bounds what is read as a token: brokers take no larger requests from clients that have not logged in.
const maxToken = 64 << 10

func (s *SASL) token() (string, error) {
	if s.TokenFile == "" {
		return s.Token, nil
	}
	info, err := os.Stat(s.TokenFile)
	if err == nil && info.Size() > maxToken {
		err = fmt.Errorf("%s has %d bytes, a token at most %d", s.TokenFile, info.Size(), maxToken)
	}
	if err != nil {
		return "", &OptionError{"sasl.token_file", err}
	}
	data, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return "", &OptionError{"sasl.token_file", err}
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", &OptionError{"sasl.token_file", fmt.Errorf("%s is empty", s.TokenFile)}
	}
	return token, nil
}

func (s *SASL) awsKeys() (aws.Auth, error) {
	auth := aws.Auth{AccessKey: s.AccessKeyID, SecretKey: s.SecretAccessKey, SessionToken: s.SessionToken}
	if auth.AccessKey == "" {
		auth = aws.Auth{AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
	}
	if auth.AccessKey == "" || auth.SecretKey == "" {
		return aws.Auth{}, &OptionError{"sasl.access_key_id", errors.New("neither it nor AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment are set")}
	}
	return auth, nil
}
