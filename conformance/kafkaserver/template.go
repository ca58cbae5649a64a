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
	"strconv"
)

// logging is the configuration of the broker's log: warnings and worse, in one line each.
const logging = `appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n%throwable{short.message}
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
`

// metadataDir is what Kafka's format command writes into a log folder beside its identity: the features to start with. It is always
// the same, so it is made once; formatting each folder anew would cost a start of a JVM per node.
const metadataDir = "__cluster_metadata-0"

// prepare adds to a downloaded broker what else is needed to start it.
func (d *distribution) prepare(ctx context.Context, dir string) error {
	conf := filepath.Join(dir, "conf")
	if err := os.Mkdir(conf, 0o755); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	if err := os.WriteFile(filepath.Join(conf, "log4j2.properties"), []byte(logging), 0o644); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	scratch := filepath.Join(dir, "scratch")
	properties := filepath.Join(dir, "format.properties")
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
	cmd := exec.CommandContext(ctx, d.java, "-cp", classPath(dir), "kafka.tools.StorageTool", "format", "-t", newClusterID(), "-c", properties)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kafkaserver: format a log folder: %w\n%s", err, bytes.TrimSpace(out))
	}
	if err := os.Rename(filepath.Join(scratch, metadataDir), filepath.Join(dir, metadataDir)); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	return nil
}

// classPath lists the broker's files. The wildcard is expanded by java.
func classPath(dir string) string {
	return filepath.Join(dir, "conf") + string(filepath.ListSeparator) + filepath.Join(dir, "lib", "*")
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
		"version": "1", "cluster.id": cluster, "node.id": strconv.Itoa(node), "directory.id": newClusterID(),
	})
}

// newClusterID returns a random id in Kafka's notation. It must not begin with a dash, which Kafka's tools take for an option.
func newClusterID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[0] &= 0x7f
	return base64.RawURLEncoding.EncodeToString(id[:])
}
