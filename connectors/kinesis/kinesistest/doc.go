// Package kinesistest runs a double of Amazon Kinesis Data Streams inside the process.
package kinesistest
