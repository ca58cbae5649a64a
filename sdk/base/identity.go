package base

import (
	"fmt"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// checkIdentity compares the configuration that a restored state was made for with the present one, and names every
// attribute that differs, unless compatible says that its value may. A nil compatible allows nothing.
func checkIdentity(stored, configured []sdk.Attribute, compatible func(stored, configured sdk.Attribute) bool) error {
	var differences []string
	now := valuesByName(configured)
	for _, a := range stored {
		if value, ok := now[a.Name]; !ok {
			differences = append(differences, fmt.Sprintf("%s was %q and is not configured", a.Name, a.Value))
		} else if value != a.Value && (compatible == nil || !compatible(a, sdk.Attribute{Name: a.Name, Value: value})) {
			differences = append(differences, fmt.Sprintf("%s was %q and is configured as %q", a.Name, a.Value, value))
		}
	}
	then := valuesByName(stored)
	for _, a := range configured {
		if _, ok := then[a.Name]; !ok {
			differences = append(differences, fmt.Sprintf("%s is configured as %q and was not set", a.Name, a.Value))
		}
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: configure what it was to go on from this state, or start without it (a new job name or state directory)",
		sdk.ErrIncompatibleState, strings.Join(differences, "; "))
}

func valuesByName(attributes []sdk.Attribute) map[string]string {
	values := make(map[string]string, len(attributes))
	for _, a := range attributes {
		values[a.Name] = a.Value
	}
	return values
}
