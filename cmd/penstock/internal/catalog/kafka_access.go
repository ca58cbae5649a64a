package catalog

import (
	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

// kafkaTLS is a section whose presence alone means something: tls: {} trusts the authorities of the system.
func kafkaTLS(into **kafka.TLS) *option.Option {
	var t kafka.TLS
	return option.Section("tls", "Encrypts connections. Empty, tls: {}, trusts the authorities of the system. Absent, connections are plain text.", option.Group{
		Options: []*option.Option{
			option.Text("ca_file", &t.CAFile, "Certificates in PEM of the authorities to trust, in place of the system's."),
			option.Text("cert_file", &t.CertFile, "This client's certificate with its chain, in PEM, where brokers ask for one. With key_file."),
			option.Text("key_file", &t.KeyFile, "Private key of cert_file, in PEM."),
			option.Text("server_name", &t.ServerName, "Name that the brokers' certificates must be for, when that is not the host of their address."),
			option.Flag("insecure_skip_verify", &t.InsecureSkipVerify, "Trust whoever answers. Passwords and records may then be read in between: for tests only."),
		},
		Check: func(*option.Checker) { *into = &t },
	})
}

func kafkaSASL(into **kafka.SASL) *option.Option {
	var s kafka.SASL
	return option.Section("sasl", "The login. Absent, there is none.", option.Group{
		Options: []*option.Option{
			option.Words("mechanism", &s.Mechanism, "How to log in, as the brokers have it enabled.", kafka.Mechanisms()...).Require(),
			option.Text("user", &s.User, "User of PLAIN and SCRAM."),
			option.Text("password", &s.Password, "Password of PLAIN and SCRAM.").Hide(),
			option.Text("token", &s.Token, "Token of OAUTHBEARER. Either this or token_file.").Hide(),
			option.Text("token_file", &s.TokenFile, "File with the token of OAUTHBEARER, read at every login: whatever renews the file renews the login."),
			option.Text("access_key_id", &s.AccessKeyID, "AWS access key of AWS_MSK_IAM. Absent, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment are used."),
			option.Text("secret_access_key", &s.SecretAccessKey, "Secret of access_key_id.").Hide(),
			option.Text("session_token", &s.SessionToken, "Session token of temporary AWS credentials.").Hide(),
		},
		Check: func(*option.Checker) { *into = &s },
	})
}
