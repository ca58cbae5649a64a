// Package kinesisserver starts kinesis-local, an emulator of Amazon Kinesis that others wrote, for tests: as a plain process with its data in memory. What
// connectors/kinesis/kinesistest says about Kinesis is compared with it, by one suite that runs against both (contract_test.go), and the Kinesis source reads from it what
// it reads from the double.
//
//	func TestMain(m *testing.M) { os.Exit(kinesisserver.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		server := kinesisserver.Shared(t) // one for all tests of the binary
//		client := server.Client()
//		name := server.CreateStream(t, "orders", 2) // a name of its own, like orders-x7k2...
//	}
//
// [New] returns errors instead of skipping or failing a test.
//
// [StartKinesalite] starts the other emulator, kinesalite: for many records, since it is fast, and for what time does, since its clock can be put forward.
//
// # What it needs
//
// Node 18 or later and, the first time, npm. testdata/servers/kinesis pins what is installed; it is kept in the user's cache folder, 20 MB. Where a server cannot be had,
// tests are skipped and say so; the environment decides otherwise with [Switch] and [External].
//
// # What it leaves behind
//
// Nothing: the server is killed at the end, and on Linux dies with the test process even if that is killed. It listens on all interfaces, on a free port that is chosen at random.
//
// # What it is not
//
// Kinesis. It does not throttle, trims nothing, and deviates in what the suite lists; enhanced fan-out does not work with the AWS SDK for Go.
package kinesisserver
