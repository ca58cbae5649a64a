package kafka

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// validateAccess reports what is wrong with how clients connect. Both may be nil.
func validateAccess(t *TLS, s *SASL) (problems []error) {
	if t != nil {
		problems = append(problems, t.validate()...)
	}
	if s != nil {
		problems = append(problems, s.validate()...)
		if s.Mechanism == AWSMSKIAM && t == nil {
			problems = append(problems, errors.New("tls: missing: AWS_MSK_IAM works with TLS only"))
		}
	}
	return problems
}

// accessOptions makes the options for how clients connect. Both may be nil. It reads the files of t. own are the options of whoever
// uses the package: when there are any, they may say how to connect, so nothing is put in their way.
func accessOptions(t *TLS, s *SASL, dialTimeout time.Duration, own []kgo.Opt) ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.DialTimeout(dialTimeout)}
	switch {
	case t != nil:
		config, err := t.config()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	case len(own) == 0:
		options = append(options, plainDialer(dialTimeout))
	}
	if s != nil {
		options = append(options, kgo.SASL(s.mechanism()))
	}
	return options, nil
}

// loginText says as whom clients come, for errors.
func loginText(s *SASL) string {
	if s == nil {
		return "no login"
	}
	return s.String()
}
