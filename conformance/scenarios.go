package conformance

import "github.com/penstock-dev/penstock/sdk"

// scenario is the code of the case with that name; nil for a name that is no case.
func scenario[S sdk.Split, B Backend](name string) func(*trial[S, B]) {
	for _, group := range []map[string]func(*trial[S, B]){
		loopScenarios[S, B](), turnScenarios[S, B](), wakeScenarios[S, B](), splitScenarios[S, B](), endScenarios[S, B](), stateScenarios[S, B](),
		checkpointScenarios[S, B](), closeScenarios[S, B](), codecScenarios[S, B](), enumeratorScenarios[S, B](), restoreScenarios[S, B](),
		engineScenarios[S, B](), metricsScenarios[S, B](),
	} {
		if run := group[name]; run != nil {
			return run
		}
	}
	return nil
}
