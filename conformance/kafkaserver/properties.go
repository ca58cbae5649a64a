package kafkaserver

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// escapes are what a value in a Java properties file cannot hold as it is.
var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// writeProperties writes a Java properties file, sorted by name.
func writeProperties(path string, properties map[string]string) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		text.WriteString(name + "=" + escapes.Replace(properties[name]) + "\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	return nil
}
