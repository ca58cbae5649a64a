package cursor

import "log/slog"

// Token is a secret. Whatever prints, logs or encodes it, or a struct that holds it, writes [Redacted]; only string(token) is the text itself.
type Token string

// Redacted stands for a token.
const Redacted = "[redacted]"

// String implements fmt.Stringer.
func (Token) String() string { return Redacted }

// GoString implements fmt.GoStringer.
func (Token) GoString() string { return Redacted }

// LogValue implements slog.LogValuer.
func (Token) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalText implements encoding.TextMarshaler, and so that of JSON and YAML.
func (Token) MarshalText() ([]byte, error) { return []byte(Redacted), nil }
