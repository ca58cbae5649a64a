package kafka

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// No broker here speaks AWS_MSK_IAM, so the first message is checked as one would: the signature is computed again from what the message
// claims, by the published rules for signed requests (version 4, in the query) and for this mechanism.
func TestTheMessageOfAWSMSKIAMIsSignedAsABrokerWouldCheckIt(t *testing.T) {
	t.Parallel()
	const host = "b-1.cluster.x1y2z3.c2.kafka.eu-west-1.amazonaws.com"
	for name, session := range map[string]string{"keys": "", "keys of a session": "token/with+signs="} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &SASL{Mechanism: AWSMSKIAM, AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret/with+signs", SessionToken: session}
			m := s.mechanism()
			if m.Name() != "AWS_MSK_IAM" {
				t.Errorf("mechanism %q", m.Name())
			}
			_, message, err := m.Authenticate(t.Context(), host+":9098")
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			if err := json.Unmarshal(message, &got); err != nil {
				t.Fatal(err)
			}
			for field, want := range map[string]string{
				"version": "2020_10_22", "host": host, "action": "kafka-cluster:Connect", "x-amz-algorithm": "AWS4-HMAC-SHA256",
				"x-amz-signedheaders": "host", "x-amz-security-token": session,
			} {
				if got[field] != want {
					t.Errorf("%s is %q, want %q", field, got[field], want)
				}
			}
			at, err := time.Parse("20060102T150405Z", got["x-amz-date"])
			if err != nil || time.Since(at).Abs() > time.Minute {
				t.Errorf("x-amz-date %q: %v", got["x-amz-date"], err)
			}
			scope := at.Format("20060102") + "/eu-west-1/kafka-cluster/aws4_request"
			if got["x-amz-credential"] != "AKIDEXAMPLE/"+scope {
				t.Errorf("x-amz-credential %q", got["x-amz-credential"])
			}
			if want := signature(got, host, scope, s.SecretAccessKey); got["x-amz-signature"] != want {
				t.Errorf("x-amz-signature %q, want %q", got["x-amz-signature"], want)
			}
			if strings.Contains(string(message), s.SecretAccessKey) {
				t.Error("the message holds the secret key")
			}
		})
	}
}

// signature is what the claims of a message must be signed with.
func signature(claims map[string]string, host, scope, secret string) string {
	parameters := map[string]string{
		"Action": claims["action"], "X-Amz-Algorithm": claims["x-amz-algorithm"], "X-Amz-Credential": claims["x-amz-credential"],
		"X-Amz-Date": claims["x-amz-date"], "X-Amz-Expires": claims["x-amz-expires"], "X-Amz-SignedHeaders": claims["x-amz-signedheaders"],
	}
	if token := claims["x-amz-security-token"]; token != "" {
		parameters["X-Amz-Security-Token"] = token
	}
	query := make([]string, 0, len(parameters))
	for name, value := range parameters {
		query = append(query, name+"="+strings.ReplaceAll(url.QueryEscape(value), "+", "%20"))
	}
	slices.Sort(query)
	empty := sha256.Sum256(nil)
	request := strings.Join([]string{"GET", "/", strings.Join(query, "&"), "host:" + host, "", "host", hex.EncodeToString(empty[:])}, "\n")
	hashed := sha256.Sum256([]byte(request))
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", claims["x-amz-date"], scope, hex.EncodeToString(hashed[:])}, "\n")
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, toSign))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text)) // never fails
	return h.Sum(nil)
}
