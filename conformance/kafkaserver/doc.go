// Package kafkaserver starts real Apache Kafka servers for tests, on loopback and as plain processes: what an embedded broker cannot
// show is shown by the real one.
//
//	func TestMain(m *testing.M) { os.Exit(kafkaserver.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		server := kafkaserver.Shared(t) // one for all tests of the binary
//		source := kafka.Source{Brokers: server.Addrs(), Topics: []string{"orders"}}
//	}
//
// [Start] starts one for a single test, with [Options]: SASL, TLS, ACLs, any broker property. [StartCluster] and [SharedCluster] start three brokers
// and a controller, whose nodes a test may kill ([Server.Kill9]), freeze ([Server.Stop], [Server.Cont]), end ([Server.Terminate]) and start
// again ([Server.Restart]). [New] and [NewCluster] return errors instead of failing a test.
//
// # What it needs
//
// Java 17 or later and, the first time, Maven. The broker is what testdata/servers/kafka pins: a Maven project and the sum of
// each of its files. It is kept in the user's cache folder, 45 MB, and used by all later runs. Where a server cannot be had, tests are skipped and
// say so; the environment decides otherwise with [Switch] and [External].
//
// # What it leaves behind
//
// Nothing: data lives in the test's own folder, each node has a process group, which is killed at the end, and on Linux dies with the test
// process even if that is killed. A test that fails shows the end of each node's log and keeps the logs.
package kafkaserver
