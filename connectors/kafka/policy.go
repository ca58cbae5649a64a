package kafka

import (
	"fmt"
	"slices"
)

// Policy says what happens when a saved position has lost its meaning. Each time one other than [Fail] is applied it is counted
// and logged with the exact range.
type Policy string

// The policies. Which of them a field takes is written there.
const (
	// Fail ends the job with an error that says what was lost. The default everywhere.
	Fail Policy = "fail"
	// ContinueEarliest goes on with the earliest record that was not read.
	ContinueEarliest Policy = "earliest"
	// ContinueLatest goes on at the end of the log.
	ContinueLatest Policy = "latest"
	// Wait keeps the position and goes on when what is missing is there again.
	Wait Policy = "wait"
)

// validatePolicy reports a value that the field does not take.
func validatePolicy(field string, p Policy, allowed ...Policy) []error {
	if slices.Contains(allowed, p) {
		return nil
	}
	return []error{fmt.Errorf("%s: %q: use one of %v", field, string(p), allowed)}
}
