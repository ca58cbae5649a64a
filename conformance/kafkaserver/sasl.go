package kafkaserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const loginModules = "org.apache.kafka.common.security."

// saslProperties lets users in on the listeners with SASL.
func (o *Options) saslProperties(p map[string]string) {
	var plain strings.Builder
	plain.WriteString(loginModules + "plain.PlainLoginModule required")
	for _, user := range slices.Sorted(maps.Keys(o.Users)) {
		fmt.Fprintf(&plain, " user_%s=%q", user, o.Users[user])
	}
	modules := map[string]string{
		"PLAIN":         plain.String() + ";",
		"SCRAM-SHA-256": loginModules + "scram.ScramLoginModule required;",
		"SCRAM-SHA-512": loginModules + "scram.ScramLoginModule required;",
	}
	if o.OAuth {
		modules["OAUTHBEARER"] = loginModules + `oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`
	}
	mechanisms := slices.Sorted(maps.Keys(modules))
	p["sasl.enabled.mechanisms"] = strings.Join(mechanisms, ",")
	for _, listener := range []Listener{SASLPlaintext, SASLTLS} {
		for _, mechanism := range mechanisms {
			p["listener.name."+strings.ToLower(string(listener))+"."+strings.ToLower(mechanism)+".sasl.jaas.config"] = modules[mechanism]
		}
	}
}

// UnsignedToken is an OAUTHBEARER token of a user, which a server with [Options.OAuth] accepts until it expires.
func UnsignedToken(user string, expires time.Time) string {
	part := func(v map[string]any) string {
		data, _ := json.Marshal(v) // strings and numbers always marshal
		return base64.RawURLEncoding.EncodeToString(data)
	}
	return part(map[string]any{"alg": "none"}) + "." +
		part(map[string]any{"sub": user, "iat": time.Now().Unix(), "exp": expires.Unix()}) + "."
}
