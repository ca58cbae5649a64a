package kafka_test

import (
	"fmt"
	"time"

	"github.com/penstock-dev/penstock/connectors/kafka"
)

// A job that reads what two topics hold of one day, and ends.
func ExampleSource() {
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	source := &kafka.Source{
		Brokers: []string{"127.0.0.1:9092"},
		Topics:  []string{"orders", "payments"},
		Start:   kafka.Timestamp(day),
		Stop:    kafka.Timestamp(day.AddDate(0, 0, 1)),
	}
	fmt.Println(source.Validate())
	// Output: <nil>
}

// Every problem is reported at once, each with its field.
func ExampleSource_Validate() {
	source := &kafka.Source{Brokers: []string{"kafka"}, Stop: kafka.Earliest()}
	fmt.Println(source.Validate())
	// Output:
	// kafka: topics: none given: name topics, or a pattern
	// brokers: "kafka": not of the form host:port
	// stop: earliest would read nothing: use latest, a timestamp or offsets, or leave it out to read for ever
}
