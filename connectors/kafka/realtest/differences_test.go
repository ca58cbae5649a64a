package realtest

import (
	"strings"
	"testing"
)

// differences is what the embedded broker of kafkatest (kfake) does differently from Apache Kafka 4.4, as far as a reader can tell, and the
// test of this package that shows the real behaviour. Where there is none the reader does not depend on it, for the reason given.
var differences = []struct {
	subject, real, embedded string
	shown                   string // a test, or why there is none
}{
	{
		"offset out of range", "the answer says neither start nor end of the log (-1)", "the answer says both",
		"TestDeletedRecordsBehindARestoredPositionAreAnErrorThatNamesTheirRange",
	},
	{
		"errors for an offset out of range", "some hundred a second", "ten thousands a second",
		"no test: the first one ends the reader or takes the partition aside",
	},
	{
		"compacted head", "the log still begins at 0, a fetch there is no error", "the log begins at the first survivor, a fetch before it is out of range",
		"TestCompactionLeavesGapsAndNeverMovesTheStartOfTheLog",
	},
	{
		"emptied batches", "stay when an idempotent producer wrote them last", "are dropped",
		"TestABoundedReaderEndsWhenCompactionEmptiedEverythingBelowAnOpenTransaction",
	},
	{
		"producer epoch of a marker", "one more than that of the records", "the same",
		"no test: the reader looks at the marker's offset only",
	},
	{
		"aborted transactions in an answer that fetch_max_bytes cuts short", "are listed", "are left out, and so are read as committed",
		"TestAbortedTransactionsStayHiddenInFetchesThatAreCutShort",
	},
	{
		"time-out of a transaction", "up to a sweep later", "to the moment",
		"TestRecordsBehindAHangingTransactionComeWhenTheBrokerHasAbortedIt",
	},
	{
		"fetch of committed records between stable offset and end", "is answered at once", "waits",
		"TestAJobThatStopsAtTheLatestCommittedRecordEndsWhileATransactionIsOpen",
	},
	{
		"log append time", "is the time of the record", "is accepted and not applied",
		"TestARecordHasTheTimeOfTheBrokerWhereTheTopicSaysSo",
	},
	{
		"quotas", "slow down, with empty answers", "are accepted and not applied",
		"TestAQuotaSlowsABoundedReaderAndEndsItNowhereButAtItsStop",
	},
	{
		"topic deleted and created anew at once", "the old id becomes unknown", "silence",
		"TestATopicCreatedAnewAtOnceWhileItIsReadIsAnError",
	},
	{
		"end of an old epoch after a leader moved", "the real end", "unknown; kafkatest answers in its place",
		"TestAMovedLeaderLosesAndRepeatsNothing",
	},
	{
		"unclean election", "truncates the log", "does not exist; kafkatest simulates the answers",
		"TestALogThatWasTruncatedByAnUncleanElectionIsAnErrorThatNamesTheRange",
	},
	{
		"records that too few replicas have", "are not shown", "replicas do not exist",
		"TestRecordsOfOneReplicaAloneAreNotShownWhileTwoHaveToHaveThem",
	},
	{
		"retention", "deletes the active segment too, by itself", "works when told to",
		"TestRetentionDeletesTheActiveSegmentTooAndAReaderAtTheEndGoesOn",
	},
	{
		"loss of a broker", "moves its leaders after a session time-out", "brokers share one process",
		"TestALostLeaderLosesAndRepeatsNothingAndReadingGoesOn",
	},
	{
		"racks", "followers serve readers of their rack", "only leaders serve",
		"TestAReaderInARackIsServedByTheReplicaThere",
	},
	{
		"wrong password", "is named as such", "closes the connection",
		"TestEveryWayToLogInReadsAndARefusedWayToTheClusterIsNamedWithinSeconds",
	},
}

func TestEveryDifferenceIsShownByATestThatExists(t *testing.T) {
	t.Parallel()
	tests := testsIn(t, ".")
	for _, d := range differences {
		if d.subject == "" || d.real == "" || d.embedded == "" {
			t.Errorf("incomplete: %+v", d)
		}
		if _, reason := strings.CutPrefix(d.shown, "no test: "); !reason && !tests[d.shown] {
			t.Errorf("%s: there is no %s", d.subject, d.shown)
		}
	}
}
