package base

import "github.com/penstock-dev/penstock/sdk"

// Capability is the descriptor of a source that is built on this package: everything the managed lane requires is set. A
// source that exchanges events, has an order among its splits or needs acknowledgements sets those fields on the result.
func Capability(connector, version string) sdk.Capability {
	return sdk.Capability{
		Connector:       connector,
		Version:         version,
		Protocol:        sdk.ProtocolVersion,
		BoundedPoll:     true,
		Wakeup:          true,
		AttemptFencing:  true,
		AsyncEnumerator: true,
	}
}
