package kafkaserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// logging is the configuration of the broker's log: warnings and worse, in one line each, without those about nodes that cannot be
// reached, which tests see to.
const logging = `appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n%throwable{short.message}
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
logger.network.name=org.apache.kafka.clients.NetworkClient
logger.network.level=error
`

// loggingFile is where it is. It is named to the JVM and not put on the class path: an archive of classes allows no folders there.
const loggingFile = "log4j2.properties"

// metadataDir is what Kafka's format command writes into a log folder beside its identity: the features to start with. It is always
// the same, so it is made once; formatting each folder anew would cost a start of a JVM per node.
const metadataDir = "__cluster_metadata-0"

// prepare adds to a downloaded broker what else is needed to start it.
func (d *distribution) prepare(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(d.dir, loggingFile), []byte(logging), 0o644); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	scratch, properties := filepath.Join(d.dir, "scratch"), filepath.Join(d.dir, "format.properties")
	err := writeProperties(properties, map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        "1",
		"controller.quorum.voters":       "1@127.0.0.1:9093",
		"listeners":                      "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
		"controller.listener.names":      "CONTROLLER",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       scratch,
	})
	if err != nil {
		return err
	}
	cp, err := d.classPath()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.java, "-cp", cp, "kafka.tools.StorageTool", "format", "-t", newID(), "-c", properties)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kafkaserver: format a log folder: %w\n%s", err, bytes.TrimSpace(out))
	}
	if err := os.Rename(filepath.Join(scratch, metadataDir), filepath.Join(d.dir, metadataDir)); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	return nil
}

// classPath lists the broker's files in a stable order, on which the archive of classes depends.
func (d *distribution) classPath() (string, error) {
	jars, err := filepath.Glob(filepath.Join(d.dir, "lib", "*.jar"))
	if err != nil {
		return "", fmt.Errorf("kafkaserver: %w", err)
	}
	slices.Sort(jars)
	return strings.Join(jars, string(filepath.ListSeparator)), nil
}

// format makes an empty log folder that belongs to a cluster and a node. Only a controller begins with features.
func (d *distribution) format(dir, cluster string, node int, controller bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	if controller {
		if err := os.CopyFS(filepath.Join(dir, metadataDir), os.DirFS(filepath.Join(d.dir, metadataDir))); err != nil {
			return fmt.Errorf("kafkaserver: %w", err)
		}
	}
	return writeProperties(filepath.Join(dir, "meta.properties"), map[string]string{
		"version": "1", "cluster.id": cluster, "node.id": strconv.Itoa(node), "directory.id": newID(),
	})
}

// newID returns a random id in Kafka's notation, for clusters and folders. It must not begin with a dash, which Kafka's tools take for an option.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id[:])
}
