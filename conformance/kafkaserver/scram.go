package kafkaserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// SetSCRAM makes a user, or changes the password of one, for SCRAM-SHA-256 and SCRAM-SHA-512.
func (s *Server) SetSCRAM(ctx context.Context, user, password string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...), kgo.DisableClientMetrics())
	if err != nil {
		return fmt.Errorf("kafkaserver: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, mechanism := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // one request may name a user once
		altered, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: user, Mechanism: mechanism, Iterations: 4096, Password: password}})
		if err = errors.Join(err, altered.Error()); err != nil {
			return fmt.Errorf("kafkaserver: SCRAM user %q: %w", user, err)
		}
	}
	return nil
}
