// Package realtest holds nothing but tests: they run the Kafka source against real brokers, of one node and of three, and show what an
// embedded broker cannot. The name of each test is the statement that it proves.
//
// The servers come from conformance/kafkaserver; where none can be had, in short mode, or with PENSTOCK_TEST_SERVERS=off the tests are skipped.
// What the embedded broker of kafkatest does differently is the table in differences_test.go.
//
//	go test ./connectors/kafka/realtest                                     everything, about three minutes
//	PENSTOCK_TEST_KAFKA=127.0.0.1:9092 go test ./connectors/kafka/realtest  what a server of yours can show
package realtest
