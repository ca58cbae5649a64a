package catalog

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-dev/penstock/cmd/penstock/internal/option"
	"github.com/penstock-dev/penstock/connectors/kafka"
)

// documented reads the table between the markers: the default by option.
func documented(t *testing.T, path, marker string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "<!-- "+marker+": begin -->")
	table, _, ended := strings.Cut(rest, "<!-- "+marker+": end -->")
	if !found || !ended {
		t.Fatalf("%s has no table between the markers %q", path, marker)
	}
	rows := make(map[string]string)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		if _, twice := rows[name]; twice {
			t.Errorf("%s: %s is there twice", path, name)
		}
		rows[name] = strings.Trim(cells[2], " `")
	}
	return rows
}

// defaults lists options, those of sections behind a dot, with what is shown as their default.
func defaults(prefix string, options []*option.Option, into map[string]string) {
	for _, o := range options {
		into[prefix+o.Name] = o.Default
		if o.Required {
			into[prefix+o.Name] = "required"
		}
		if o.Group != nil {
			defaults(prefix+o.Name+".", o.Group.Options, into)
		}
	}
}

func TestEveryOptionOfKafkaIsDocumentedWithItsDefault(t *testing.T) {
	t.Parallel()
	rows := documented(t, "../../../../docs/en/kafka.md", "source options")
	group, _ := kafkaSource().New()
	options := make(map[string]string)
	defaults("", group.Options, options)
	for name, value := range options {
		if row, ok := rows[name]; !ok {
			t.Errorf("%s is not documented", name)
		} else if row != value {
			t.Errorf("%s: the default is %q and documented as %q", name, value, row)
		}
	}
	for name := range rows {
		if _, ok := options[name]; !ok {
			t.Errorf("%s is documented and no option", name)
		}
	}
}

// decodeKafka decodes a source's options.
func decodeKafka(text string, environment map[string]string) (*kafka.Source, error) {
	s := new(kafka.Source)
	group := option.Group{Options: kafkaOptions(s), Check: func(c *option.Checker) { c.Report(s.Validate()) }}
	lookup := func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	_, err := option.Decode(option.Input{File: "job.yaml", Data: []byte("{brokers: ['a:1'], topics: [orders], " + text + "}"), Lookup: lookup}, group)
	return s, err
}

func TestKafkaOptionsReachTheSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]func(*kafka.Source) bool{
		"start: {committed: {group: g}}":                     func(s *kafka.Source) bool { return s.Start.String() == kafka.Committed("g", kafka.Position{}).String() },
		"start: {committed: {group: g, fallback: earliest}}": func(s *kafka.Source) bool { return s.Start.String() == kafka.Committed("g", kafka.Earliest()).String() },
		"stop: {committed: {group: g, fallback: latest}}":    func(s *kafka.Source) bool { return s.Stop.String() == kafka.Committed("g", kafka.Latest()).String() },
		"on_lost: latest, on_recreated: earliest, on_deleted: wait": func(s *kafka.Source) bool {
			return s.OnLost == kafka.ContinueLatest && s.OnRecreated == kafka.ContinueEarliest && s.OnDeleted == kafka.Wait
		},
		"commit_group: g, rack: a, client_id: c": func(s *kafka.Source) bool { return s.CommitGroup == "g" && s.Rack == "a" && s.ClientID == "c" },
		"tls: {}":                                func(s *kafka.Source) bool { return s.TLS != nil && *s.TLS == kafka.TLS{} },
		"tls: ":                                  func(s *kafka.Source) bool { return s.TLS != nil },
		"records_per_second: 1":                  func(s *kafka.Source) bool { return s.TLS == nil && s.SASL == nil },
		"tls: {ca_file: a, cert_file: b, key_file: c, server_name: d}": func(s *kafka.Source) bool {
			return *s.TLS == kafka.TLS{CAFile: "a", CertFile: "b", KeyFile: "c", ServerName: "d"}
		},
		"sasl: {mechanism: SCRAM-SHA-512, user: u, password: '${P}'}": func(s *kafka.Source) bool {
			return *s.SASL == kafka.SASL{Mechanism: kafka.ScramSHA512, User: "u", Password: "secret"}
		},
		"tls: {}, sasl: {mechanism: AWS_MSK_IAM, access_key_id: a, secret_access_key: b, session_token: c}": func(s *kafka.Source) bool {
			return *s.SASL == kafka.SASL{Mechanism: kafka.AWSMSKIAM, AccessKeyID: "a", SecretAccessKey: "b", SessionToken: "c"}
		},
	} {
		if s, err := decodeKafka(text, map[string]string{"P": "secret"}); err != nil || !want(s) {
			t.Errorf("%s: %+v, error %v", text, s, err)
		}
	}
}

func TestKafkaOptionsThatDoNotFitAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"start: {committed: {fallback: latest}}":                   "start.committed: names no group",
		"start: {committed: {group: g, fallback: last}}":           `fallback: "last" is not one of fail, earliest, latest`,
		"stop: {committed: {group: g, fallback: earliest}}":        `"earliest" is not one of fail, latest`,
		"start: {comitted: {group: g}}":                            `did you mean "committed"?`,
		"on_lost: skip":                                            "on_lost: ",
		"tls: {cert_file: a}":                                      "tls: cert_file and key_file belong together",
		"tls: {insecure_skip_verify: true, ca_file: a}":            "tls: insecure_skip_verify checks nothing",
		"sasl: {user: u, password: p}":                             "mechanism is missing",
		"sasl: {mechanism: PLAIN, user: u}":                        "sasl: password is missing",
		"sasl: {mechanism: PLAIN, user: u, password: p, token: t}": "sasl: token is not for PLAIN",
		"sasl: {mechanism: OAUTHBEARER}":                           "either token or token_file",
		"sasl: {mechanism: AWS_MSK_IAM}":                           "tls: missing",
	} {
		_, err := decodeKafka(text, nil)
		problems, ok := err.(option.Problems) //nolint:errorlint // what Decode documents
		if !ok || !slices.ContainsFunc(problems, func(p option.Problem) bool { return strings.Contains(fmt.Sprint(p), want) }) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestKafkaErrorsAreBlamedOnAnOption(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{&kafka.ConnectionError{Option: "tls.ca_file"}, "tls.ca_file"},
		{&kafka.OptionError{Option: "sasl.token_file"}, "sasl.token_file"},
		{kafka.ErrTopicReplaced, "on_recreated"},
		{kafka.ErrTruncated, "on_lost"},
		{kafka.ErrGroup, "commit_group"},
		{os.ErrNotExist, ""},
	} {
		if got := kafkaBlame(fmt.Errorf("wrapped: %w", test.err)); got != test.want {
			t.Errorf("%v is blamed on %q, want %q", test.err, got, test.want)
		}
	}
}
