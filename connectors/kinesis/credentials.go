package kinesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
)

// Credentials say as whom a source comes. The zero value is the SDK's default chain: environment, shared files, container, instance.
type Credentials struct {
	// Profile is a profile of the shared configuration files.
	Profile string
	// AccessKeyID, SecretAccessKey and SessionToken are a key, in place of the chain.
	AccessKeyID, SecretAccessKey, SessionToken string
	// RoleARN is a role to assume with what the above give. It is assumed again before it expires.
	RoleARN string
	// ExternalID is what the role's trust policy may ask for.
	ExternalID string
	// SessionName is seen in the service's logs; default "penstock".
	SessionName string
}

var rolePattern = regexp.MustCompile(`^arn:[a-z0-9-]+:iam::[0-9]{12}:role/.+$`)

func (c Credentials) validate() (problems []error) {
	problem := func(bad bool, text string) {
		if bad {
			problems = append(problems, errors.New("credentials: "+text))
		}
	}
	problem((c.AccessKeyID == "") != (c.SecretAccessKey == ""), "access_key_id and secret_access_key belong together: give both")
	problem(c.SessionToken != "" && c.AccessKeyID == "", "session_token belongs to an access_key_id")
	problem(c.AccessKeyID != "" && c.Profile != "", "profile is given beside access_key_id: use one of them")
	problem(c.ExternalID != "" && c.RoleARN == "", "external_id belongs to a role_arn")
	problem(c.RoleARN != "" && !rolePattern.MatchString(c.RoleARN), fmt.Sprintf("role_arn: %q is no ARN of a role, such as arn:aws:iam::123456789012:role/reader", c.RoleARN))
	return problems
}

// Bounds of connections. Requests have a deadline of their own.
const (
	dialTimeout  = 5 * time.Second
	idleTimeout  = 60 * time.Second
	idlePerHost  = 64
	tlsHandshake = 5 * time.Second
)

// connect makes a client. close drops its idle connections. The SDK does not retry: it would block a poll for seconds, and the reader has
// other shards to serve meanwhile.
func (s *Source) connect(ctx context.Context) (client *kinesis.Client, provider aws.CredentialsProvider, closeIdle func(), err error) {
	load := []func(*config.LoadOptions) error{config.WithHTTPClient(awshttp.NewBuildableClient().WithDialerOptions(func(d *net.Dialer) {
		d.Timeout = dialTimeout
	}).WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost, t.IdleConnTimeout, t.TLSHandshakeTimeout = idlePerHost, idleTimeout, tlsHandshake
	}))}
	load = append(load, config.WithLogger(logging.Nop{})) // it would print to stderr; what matters comes back as an error
	if region := s.region(); region != "" {
		load = append(load, config.WithRegion(region))
	}
	if s.Credentials.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(s.Credentials.Profile))
	}
	if c := s.Credentials; c.AccessKeyID != "" {
		load = append(load, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, nil, nil, &ConfigError{Option: "credentials", Problem: err.Error(), Remedy: "check the profile and the shared configuration files (AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE)", Err: err}
	}
	if cfg.Region == "" {
		return nil, nil, nil, &ConfigError{Option: "region", Problem: "it is not given, and neither the environment nor the profile has one", Remedy: "set region, or AWS_REGION"}
	}
	closeIdle = func() {}
	if made, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok { // with the authorities of AWS_CA_BUNDLE; from here on it is ours to close
		transport := made.GetTransport()
		cfg.HTTPClient = &http.Client{Transport: detached{transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		closeIdle = transport.CloseIdleConnections
	}
	if c := s.Credentials; c.RoleARN != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), c.RoleARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = "penstock"
			if c.SessionName != "" {
				o.RoleSessionName = c.SessionName
			}
			if c.ExternalID != "" {
				o.ExternalID = aws.String(c.ExternalID)
			}
		}))
	}
	client = kinesis.NewFromConfig(cfg, func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{}
		if s.Endpoint != "" {
			o.BaseEndpoint = aws.String(s.Endpoint)
		}
		for _, option := range s.Client {
			option(o)
		}
	})
	return client, client.Options().Credentials, closeIdle, nil
}
