package kinesistest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
)

// sealer makes the opaque strings that a client gets and gives back: shard iterators and the tokens of pages. The state is in the string, so the server
// keeps none; a string that this server did not make, or made for another purpose, is refused.
type sealer struct{ key []byte }

func newSealer() sealer {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return sealer{key}
}

const (
	macBytes = 16
	// maxToken is longer than any string that a sealer makes for names of the allowed lengths.
	maxToken = 2048
)

func (s sealer) mac(purpose string, payload []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(purpose))
	h.Write([]byte{0})
	h.Write(payload)
	return h.Sum(nil)[:macBytes]
}

// seal writes v, which holds strings and numbers only.
func (s sealer) seal(purpose string, v any) string {
	payload, _ := json.Marshal(v) // cannot fail for what is sealed
	return base64.StdEncoding.EncodeToString(append(s.mac(purpose, payload), payload...))
}

// open reads into v what seal wrote, and reports false for anything else.
func (s sealer) open(purpose, text string, v any) bool {
	if len(text) > maxToken {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < macBytes || !hmac.Equal(raw[:macBytes], s.mac(purpose, raw[macBytes:])) {
		return false
	}
	return json.Unmarshal(raw[macBytes:], v) == nil
}
