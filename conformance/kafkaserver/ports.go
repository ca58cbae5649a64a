package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// A broker keeps its port when it is killed and started again, so the port may not be one that the system hands to outgoing
// connections meanwhile: those begin at 32768 on Linux and higher elsewhere.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// freePorts returns n ports of the loopback interface that nobody listens on. Each is chosen at random, so that test processes that
// start servers at the same time do not choose the same.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var (
		listen net.ListenConfig
		ports  []int
		held   []net.Listener
		last   error
	)
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := listen.Listen(ctx, "tcp", address(port))
		if err != nil {
			last = err
			continue
		}
		held, ports = append(held, l), append(ports, port)
	}
	return nil, fmt.Errorf("kafkaserver: no free port between %d and %d: %w", firstPort, lastPort, errors.Join(last, ctx.Err()))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
