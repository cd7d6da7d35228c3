package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// machine is network namespaces of this test's own: a host with the bridge, a pod on it, and somebody beyond the host.
//
//	pod 10.244.0.2 ── hcp0 host 192.0.2.1 ── 192.0.2.2 beyond
//
// The machine's own namespace, rules and settings are not touched: everything lives behind `ip netns`, and goes with it.
type machine struct {
	t                 *testing.T
	host, pod, beyond string
}

func newMachine(t *testing.T, opts Options, before ...string) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	for _, tool := range []string{"ip", "nft", "iptables"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	id := fmt.Sprintf("hcpt%d", time.Now().UnixNano()%1_000_000_000)
	m := &machine{t: t, host: id + "h", pod: id + "p", beyond: id + "b"}
	for _, ns := range []string{m.host, m.pod, m.beyond} {
		m.do("ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		m.in(ns, "ip link set lo up")
	}
	m.in(m.host, "ip link add "+Bridge+" address "+bridgeMAC+" type bridge nf_call_iptables 1")
	m.in(m.host, "ip link set "+Bridge+" up")
	m.in(m.host, "ip address replace "+NodePrefix+" dev "+Bridge)
	m.in(m.host, "ip link add pod type veth peer name eth0 netns "+m.pod)
	m.in(m.host, "ip link set pod master "+Bridge+" up")
	m.in(m.pod, "ip link set eth0 up")
	m.in(m.pod, "ip address add 10.244.0.2/24 dev eth0")
	m.in(m.pod, "ip route add default via "+NodeIP)
	m.in(m.host, "ip link add out type veth peer name eth0 netns "+m.beyond)
	m.in(m.host, "ip link set out up")
	m.in(m.host, "ip address add 192.0.2.1/24 dev out")
	m.in(m.beyond, "ip link set eth0 up")
	m.in(m.beyond, "ip address add 192.0.2.2/24 dev eth0")
	for _, r := range routed {
		m.in(m.host, "ip route replace "+r+" dev "+Bridge+" src "+NodeIP)
	}
	m.in(m.host, "sysctl -qw net.ipv4.conf."+Bridge+".forwarding=1")
	if opts.PodEgress {
		m.in(m.host, "sysctl -qw net.ipv4.ip_forward=1")
	}
	for _, command := range before {
		m.in(m.host, command)
	}
	m.apply(opts)
	return m
}

func (m *machine) do(name string, args ...string) {
	m.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

func (m *machine) in(ns, command string) {
	m.t.Helper()
	m.do("ip", append([]string{"netns", "exec", ns}, strings.Fields(command)...)...)
}

func (m *machine) apply(opts Options) {
	m.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", m.host, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(ruleset(opts))
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("nft: %v: %s", err, out)
	}
}

// run is onHost in the machine's namespace.
func (m *machine) run(ctx context.Context, name string, args ...string) (string, error) {
	return onHost(ctx, "ip", append([]string{"netns", "exec", m.host, name}, args...)...)
}

// chain is what iptables says about a chain.
func (m *machine) chain(name string) string {
	m.t.Helper()
	rules, err := m.run(m.t.Context(), "iptables", "-S", name)
	if err != nil {
		m.t.Fatal(err)
	}
	return rules
}

// helper is this test binary as a program inside a namespace: it listens and prints who called, or dials and prints what came.
const helperEnv = "NETWORK_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperEnv); role != "" {
		if err := helper(role, os.Args[1]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func helper(role, address string) error {
	const patience = 3 * time.Second
	if role == "keep" {
		return keep(address == "egress")
	}
	if role == "dial" {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		answer := make([]byte, 100)
		n, err := conn.Read(answer)
		fmt.Print(string(answer[:n]))
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		_, _ = conn.Write([]byte(host))
		_ = conn.Close()
	}
}

func (m *machine) listen(ns, address string) {
	m.t.Helper()
	m.start(ns, "listen", address)
}

// start runs a helper until the test ends, and waits until it says that it works.
func (m *machine) start(ns, role, address string) {
	m.t.Helper()
	cmd := m.program(context.Background(), ns, role, address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 100)
	if n, err := out.Read(line); err != nil || !strings.HasPrefix(string(line[:n]), "listening") {
		m.t.Fatalf("%s %s: %v %s", role, address, err, line[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the program
}

// dial returns the address that the other side saw.
func (m *machine) dial(ns, address string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Second)
	defer cancel()
	out, err := m.program(ctx, ns, "dial", address).CombinedOutput()
	if err != nil {
		return "", errors.New(strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

func (m *machine) program(ctx context.Context, ns, role, address string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", ns, self, address)
	cmd.Env = append(os.Environ(), helperEnv+"="+role)
	return cmd
}

func TestTraffic(t *testing.T) {
	t.Run("When pods stay inside a pod should be refused beyond the machine at once, and reach the node", func(t *testing.T) {
		g := NewWithT(t)
		// Forwarding is on, as it is where another program of the machine needs it: the guard must hold all the same.
		m := newMachine(t, Options{}, "sysctl -qw net.ipv4.ip_forward=1")
		m.listen(m.beyond, "192.0.2.2:8080")
		m.listen(m.host, NodeIP+":8080")
		m.in(m.beyond, "ip route add default via 192.0.2.1")
		_, err := m.dial(m.pod, "192.0.2.2:8080")
		g.Expect(err).To(MatchError(ContainSubstring("refused")))
		g.Expect(m.dial(m.pod, NodeIP+":8080")).To(Equal("10.244.0.2"))
	})
	t.Run("When pods may reach beyond they should, behind the machine's address", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{PodEgress: true})
		m.listen(m.beyond, "192.0.2.2:8080")
		g.Expect(m.dial(m.pod, "192.0.2.2:8080")).To(Equal("192.0.2.1"))
	})
	t.Run("When somebody beyond calls a cluster address it should find nobody", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{PodEgress: true})
		m.listen(m.pod, "10.244.0.2:8080")
		m.in(m.beyond, "ip route add "+ClusterCIDR+" via 192.0.2.1")
		_, err := m.dial(m.beyond, "10.244.0.2:8080")
		g.Expect(err).To(MatchError(ContainSubstring("timeout")))
	})
	t.Run("When a service has no rule yet a client should be refused at once", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{})
		for _, ns := range []string{m.pod, m.host} {
			// More than one try is for a machine that is slow to start the program that dials.
			g.Eventually(func(g Gomega) time.Duration {
				start := time.Now()
				_, err := m.dial(ns, "10.96.0.99:443")
				g.Expect(err).To(MatchError(ContainSubstring("refused")))
				return time.Since(start)
			}).WithTimeout(time.Minute).Should(BeNumerically("<", 2*time.Second))
		}
	})
}
