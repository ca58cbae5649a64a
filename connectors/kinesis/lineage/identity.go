package lineage

import (
	"fmt"
	"strings"

	"github.com/penstock-dev/penstock/sdk"
)

// compare reports what of the configuration is not what the state was made for. Without a configuration, as in tools, everything fits.
func compare(stored, configured []sdk.Attribute) error {
	if configured == nil {
		return nil
	}
	now := make(map[string]string, len(configured))
	for _, a := range configured {
		now[a.Name] = a.Value
	}
	var differences []string
	for _, a := range stored {
		if value := now[a.Name]; value != a.Value {
			differences = append(differences, fmt.Sprintf("%s was %q and is configured as %q", a.Name, a.Value, value))
		}
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: configure what it was to go on from this state, or start without it (a new job name or state directory)",
		sdk.ErrIncompatibleState, strings.Join(differences, "; "))
}
