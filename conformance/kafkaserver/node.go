package kafkaserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock-dev/penstock/conformance/process"
)

// errExited marks a node that ended by itself.
var errExited = errors.New("the node ended by itself")

// jvmFlags make a JVM small and quick to start. What the second compiler would gain takes longer than a test.
var jvmFlags = []string{"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"}

// exitWithin bounds the wait for the end of a node that was told to end. A broker moves its leaders away first.
const exitWithin = 30 * time.Second

// node is a broker, a controller or both.
type node struct {
	dist       *distribution
	id         int
	roles      string
	dir        string
	properties string
	logPath    string
	ports      map[Listener]int

	mu struct {
		sync.Mutex
		proc *process.Process // nil before the first start
	}
}

func newNode(dist *distribution, dir string, id int) *node {
	name := fmt.Sprintf("node-%d", id)
	return &node{
		dist: dist, id: id, dir: filepath.Join(dir, name), ports: make(map[Listener]int),
		properties: filepath.Join(dir, name+".properties"), logPath: filepath.Join(dir, name+".log"),
	}
}

// prepare writes what the node needs to start for the first time.
func (n *node) prepare(cluster, voters string, common map[string]string) error {
	_, controller := n.ports[controllerListener]
	if err := n.dist.format(n.dir, cluster, n.id, controller); err != nil {
		return err
	}
	p := maps.Clone(common)
	var listeners, advertised []string
	protocols := []string{string(controllerListener) + ":" + controllerListener.protocol()}
	for _, l := range slices.Sorted(maps.Keys(n.ports)) {
		at := string(l) + "://" + address(n.ports[l])
		listeners = append(listeners, at)
		if l != controllerListener {
			advertised = append(advertised, at)
			protocols = append(protocols, string(l)+":"+l.protocol())
		}
	}
	p["process.roles"] = n.roles
	p["node.id"] = strconv.Itoa(n.id)
	p["controller.quorum.voters"] = voters
	p["controller.listener.names"] = string(controllerListener)
	p["listener.security.protocol.map"] = strings.Join(protocols, ",")
	p["listeners"] = strings.Join(listeners, ",")
	p["log.dirs"] = n.dir
	if len(advertised) > 0 {
		p["advertised.listeners"] = strings.Join(advertised, ",")
		p["inter.broker.listener.name"] = string(Plaintext)
	}
	if _, ok := p["replica.selector.class"]; ok {
		p["broker.rack"] = Rack(n.id)
	}
	return writeProperties(n.properties, p)
}

// start runs the node. It must not run.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.proc != nil && n.mu.proc.Running() {
		return fmt.Errorf("kafkaserver: node %d is running: kill or terminate it first", n.id)
	}
	cp, err := n.dist.classPath()
	if err != nil {
		return err
	}
	args := slices.Concat(n.dist.flags, jvmFlags, []string{
		"-Dlog4j2.configurationFile=" + filepath.Join(n.dist.dir, loggingFile), "-cp", cp, "kafka.Kafka", n.properties,
	})
	proc, err := process.Start(process.Command{Program: n.dist.java, Args: args, Dir: filepath.Dir(n.dir), Log: n.logPath})
	if err != nil {
		return fmt.Errorf("kafkaserver: node %d: %w", n.id, err)
	}
	n.mu.proc = proc
	return nil
}

// signal sends a signal to a running node.
func (n *node) signal(s process.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.proc == nil {
		return nil
	}
	return n.send(s)
}

// send is called with the lock held.
func (n *node) send(s process.Signal) error {
	if err := n.mu.proc.Signal(s); err != nil {
		return fmt.Errorf("kafkaserver: node %d: %w", n.id, err)
	}
	return nil
}

// end sends a signal that ends the node and waits for it. A node that does not end in time is killed.
func (n *node) end(s process.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.proc == nil {
		return nil
	}
	if err := n.send(s); err != nil {
		return err
	}
	limit := time.NewTimer(exitWithin)
	defer limit.Stop()
	select {
	case <-n.mu.proc.Exited():
		return nil
	case <-limit.C:
	}
	if err := n.send(process.Kill); err != nil {
		return err
	}
	<-n.mu.proc.Exited()
	return n.problem(fmt.Errorf("it did not end within %s and was killed", exitWithin))
}

// exited reports a node that is not running, with the end of its log.
func (n *node) exited() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.proc == nil || n.mu.proc.Running() {
		return nil
	}
	return n.problem(errors.Join(errExited, n.mu.proc.Err()))
}

func (n *node) problem(err error) error {
	return &NodeError{Node: n.id, LogPath: n.logPath, LogTail: tail(n.logPath, 20), Err: err}
}

func (s *Server) node(id int) (*node, error) {
	if n := s.nodes[id]; n != nil {
		return n, nil
	}
	if !s.Owned() {
		return nil, &UnavailableError{Reason: "the server was not started by this process: nodes of " + strings.Join(s.external, ", ") + " are left alone"}
	}
	return nil, fmt.Errorf("kafkaserver: there is no node %d: nodes are %v", id, slices.Sorted(maps.Keys(s.nodes)))
}

// Kill9 ends a node at once, as a crash does, and returns when it is gone.
func (s *Server) Kill9(id int) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	return n.end(process.Kill)
}

// Terminate asks a node to end, which moves its leaders to others first, and returns when it is gone.
func (s *Server) Terminate(id int) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	return n.end(process.Terminate)
}

// Stop freezes a node: its connections stay open and nothing answers. Cont ends that, and Kill9 works on a frozen node too.
func (s *Server) Stop(id int) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	return n.signal(process.Freeze)
}

// Cont lets a frozen node go on.
func (s *Server) Cont(id int) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	return n.signal(process.Continue)
}

// Restart starts a node that has ended, with its data and its ports, and returns without waiting for it: see [Server.WaitReady].
func (s *Server) Restart(id int) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	return n.start()
}

// DataDir is where a node keeps its logs; empty when there is no such node. What is in it may only be changed while the node does not run.
func (s *Server) DataDir(id int) string {
	n, err := s.node(id)
	if err != nil {
		return ""
	}
	return n.dir
}

// WaitReady returns when every broker is registered with the controller and serves.
func (s *Server) WaitReady(ctx context.Context) error {
	return s.await(ctx, func(c clusterView) bool { return len(c.brokers) >= max(len(s.Brokers()), 1) })
}

// tail returns the last lines of a file, as far as it can be read.
func tail(path string, lines int) string {
	const most = 64 << 10
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(size-most, 0), io.SeekStart)
	}
	data, _ := io.ReadAll(io.LimitReader(f, most))
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}
