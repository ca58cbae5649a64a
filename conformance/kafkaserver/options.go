package kafkaserver

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Listener is a way into the brokers. Each broker has a port for each listener of its server.
type Listener string

// The listeners. Plaintext is always there, and is what brokers use among themselves.
const (
	Plaintext     Listener = "PLAINTEXT"
	SASLPlaintext Listener = "SASL_PLAINTEXT" // with Options.Users or Options.OAuth
	TLS           Listener = "SSL"            // with Options.TLS
	SASLTLS       Listener = "SASL_SSL"       // with Options.TLS and Options.Users or Options.OAuth
	MutualTLS     Listener = "MTLS"           // with Options.TLS; it wants a client certificate
)

// controllerListener is where nodes reach the controller.
const controllerListener Listener = "CONTROLLER"

// protocol is Kafka's name of what is spoken there.
func (l Listener) protocol() string {
	switch l {
	case SASLPlaintext, TLS, SASLTLS:
		return string(l)
	case MutualTLS:
		return string(TLS)
	case Plaintext, controllerListener:
		return string(Plaintext)
	default:
		return string(l)
	}
}

// Options of a server. The zero value is what most tests want: a plain one whose background work (retention,
// compaction, time-outs of transactions) runs within half a second instead of minutes.
type Options struct {
	// Properties are added to those of every broker, and replace them.
	Properties map[string]string
	// FastFailover moves the leaders of a broker that is dead or stopped to others after 3 s instead of 9 s.
	FastFailover bool
	// Racks puts each broker into a rack of its own, see [Rack], and lets readers that say where they are fetch from a replica there.
	Racks bool
	// Users may log in by SASL PLAIN with a password. [Server.SetSCRAM] makes users for SCRAM-SHA-256 and SCRAM-SHA-512.
	Users map[string]string
	// OAuth allows SASL OAUTHBEARER with unsigned tokens, see [UnsignedToken].
	OAuth bool
	// TLS opens the listeners TLS and MutualTLS, and SASLTLS when there is SASL at all. See [Server.Authority].
	TLS bool
	// ACLs denies what is not granted. Whoever comes by the Plaintext listener may do everything and grants it.
	ACLs bool
	// Dir is where data and logs go. Empty makes a temporary folder, which Close removes.
	Dir string
}

// Rack is the name of the rack of a broker, with [Options.Racks].
func Rack(broker int) string { return "rack-" + strconv.Itoa(broker) }

func (o *Options) sasl() bool { return len(o.Users) > 0 || o.OAuth }

// plain reports that any server will do.
func (o *Options) plain() bool {
	return len(o.Properties) == 0 && !o.FastFailover && !o.Racks && !o.sasl() && !o.TLS && !o.ACLs
}

func (o *Options) validate() error {
	for user, password := range o.Users {
		if strings.ContainsAny(user+password, "\"\\\n ;=") || user == "" || password == "" {
			return fmt.Errorf("kafkaserver: user %q: neither the name nor the password may be empty or hold quotes, backslashes, spaces, semicolons or equals signs", user)
		}
	}
	for name := range o.Properties {
		if name == "" || strings.ContainsAny(name, " =:\n\\") {
			return errors.New("kafkaserver: properties: " + strconv.Quote(name) + " is no name of a property")
		}
	}
	return nil
}

// listeners are those of a broker with these options.
func (o *Options) listeners() []Listener {
	all := []Listener{Plaintext}
	if o.sasl() {
		all = append(all, SASLPlaintext)
	}
	if o.TLS {
		all = append(all, TLS, MutualTLS)
	}
	if o.sasl() && o.TLS {
		all = append(all, SASLTLS)
	}
	return all
}

// quick makes the broker do at once what it does rarely by default.
var quick = map[string]string{
	"auto.create.topics.enable":                                   "false",
	"background.threads":                                          "2",
	"group.initial.rebalance.delay.ms":                            "0",
	"log.cleaner.backoff.ms":                                      "200",
	"log.cleaner.dedupe.buffer.size":                              "8388608",
	"log.initial.task.delay.ms":                                   "200",
	"log.retention.check.interval.ms":                             "500",
	"num.io.threads":                                              "4",
	"num.network.threads":                                         "2",
	"offsets.topic.num.partitions":                                "1",
	"share.coordinator.state.topic.min.isr":                       "1",
	"share.coordinator.state.topic.num.partitions":                "1",
	"share.coordinator.state.topic.replication.factor":            "1",
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	"transaction.state.log.min.isr":                               "1",
	"transaction.state.log.num.partitions":                        "1",
}

// fast shortens the time from the loss of a broker to new leaders.
var fast = map[string]string{
	"broker.heartbeat.interval.ms": "500",
	"broker.session.timeout.ms":    "3000",
	"replica.lag.time.max.ms":      "5000",
}

// properties are those that depend on the options alone.
func (o *Options) properties(replicas int, authority *Authority) map[string]string {
	p := maps.Clone(quick)
	p["offsets.topic.replication.factor"] = strconv.Itoa(replicas)
	p["transaction.state.log.replication.factor"] = strconv.Itoa(replicas)
	if o.FastFailover {
		maps.Copy(p, fast)
	}
	if o.Racks {
		p["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
	}
	if o.ACLs {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["super.users"] = "User:ANONYMOUS"
	}
	if o.sasl() {
		o.saslProperties(p)
	}
	if authority != nil {
		authority.properties(p)
	}
	maps.Copy(p, o.Properties)
	return p
}
