// Package servers holds the pinned descriptions of the real servers that tests start: what to download, and what every
// downloaded file must be.
package servers

import _ "embed"

// KafkaPOM is a Maven project whose runtime dependencies are an Apache Kafka broker.
//
//go:embed kafka/pom.xml
var KafkaPOM []byte

// KafkaSums are the SHA-256 sums of these dependencies, in the format of sha256sum.
//
//go:embed kafka/jars.sha256
var KafkaSums string

// KinesisPackage is an npm project whose dependencies are two emulators of Amazon Kinesis, kinesis-local and kinesalite.
//
//go:embed kinesis/package.json
var KinesisPackage []byte

// KinesisLock pins what KinesisPackage installs, with sums. It names no registry: npm asks the one that it is configured for.
//
//go:embed kinesis/package-lock.json
var KinesisLock []byte

// Kinesalite is the program that starts kinesalite with a clock that can be put forward.
//
//go:embed kinesis/kinesalite.js
var Kinesalite []byte
