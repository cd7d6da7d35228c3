package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"

	"hcp.internal/platform/internal/local/network"
	"hcp.internal/platform/internal/testenv"
)

// machine is network namespaces of this test's own: a host with a bridge and pods on it, which are host.1 and host.2, host.3, … in 10.244.0.0/24.
type machine struct {
	t    *testing.T
	id   string
	pods map[string]string // namespace by address
}

func newMachine(t *testing.T, addresses ...string) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	m := &machine{t: t, id: fmt.Sprintf("hcpp%d", time.Now().UnixNano()%1_000_000_000), pods: map[string]string{}}
	m.namespace(m.id)
	m.in(m.id, "ip link add br0 type bridge nf_call_iptables 1")
	m.in(m.id, "ip link set br0 up")
	m.in(m.id, "ip address add 10.244.0.1/24 dev br0")
	for i, address := range addresses {
		ns := fmt.Sprintf("%sp%d", m.id, i)
		m.namespace(ns)
		m.pods[address] = ns
		m.in(m.id, fmt.Sprintf("ip link add pod%d type veth peer name eth0 netns %s", i, ns))
		m.in(m.id, fmt.Sprintf("ip link set pod%d master br0 up", i))
		m.in(ns, "ip link set eth0 up")
		m.in(ns, "ip address add "+address+"/24 dev eth0")
		m.in(ns, "ip route add default via 10.244.0.1")
	}
	return m
}

func (m *machine) namespace(name string) {
	m.do(nil, "ip", "netns", "add", name)
	m.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	m.in(name, "ip link set lo up")
}

func (m *machine) do(stdin *string, name string, args ...string) {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	if stdin != nil {
		cmd.Stdin = strings.NewReader(*stdin)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

func (m *machine) in(ns, command string) {
	m.t.Helper()
	m.do(nil, "ip", append([]string{"netns", "exec", ns}, strings.Fields(command)...)...)
}

// enforce puts rules in force, as Run would.
func (m *machine) enforce(s State) {
	m.t.Helper()
	script, errs := Rules(s)
	if len(errs) > 0 {
		m.t.Fatal(errs)
	}
	for _, script := range []string{Frames, script} {
		m.do(&script, "ip", "netns", "exec", m.id, "nft", "-f", "-")
	}
}

// helper is this test binary as a program inside a namespace: it listens, or dials and prints what came.
const helperEnv = "POLICY_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperEnv); role != "" {
		if err := helper(role, os.Args[1]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

func helper(role, address string) error {
	if role == "has" {
		inet, err := network.HasChain(network.FamilyInet, Table, "pods")
		bridge, berr := network.HasChain(network.FamilyBridge, Table, "frames")
		fmt.Print(inet, " ", bridge)
		return errors.Join(err, berr)
	}
	if role == "dial" {
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
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
		_ = conn.Close()
	}
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

func (m *machine) listen(ns, address string) {
	m.t.Helper()
	cmd := m.program(context.Background(), ns, "listen", address)
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
		m.t.Fatalf("listening on %s: %v %s", address, err, line[:n])
	}
}

func (m *machine) dial(ns, address string) error {
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	if out, err := m.program(ctx, ns, "dial", address).CombinedOutput(); err != nil {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return nil
}

// TestTraffic opens connections through the kernel's own packet filter.
func TestTraffic(t *testing.T) {
	const etcd, kas, neighbour = "10.244.0.2", "10.244.0.3", "10.244.0.4"
	m := newMachine(t, etcd, kas, neighbour)
	s := State{
		Pods:       []Pod{pod("a", "etcd", etcd, "app=etcd"), pod("a", "kas", kas, "app=kas"), pod("b", "kas", neighbour, "app=kas")},
		Namespaces: map[string]map[string]string{"a": {}, "b": {}},
		Policies: []*networkingv1.NetworkPolicy{
			policyOf(t, "a", `{podSelector: {matchLabels: {app: etcd}}, policyTypes: [Ingress, Egress], ingress: [{from: [{podSelector: {matchLabels: {app: kas}}}], ports: [{port: 2379}]}]}`),
			policyOf(t, "a", `{podSelector: {matchLabels: {app: kas}}, policyTypes: [Ingress, Egress], ingress: [{ports: [{port: 6443}]}],
			  egress: [{to: [{podSelector: {matchLabels: {app: etcd}}}], ports: [{port: 2379}]}, {to: [{ipBlock: {cidr: 10.244.0.1/32}}], ports: [{port: 5000}]}]}`),
		},
	}
	s.Policies[1].Name = "q"
	m.listen(m.pods[etcd], "0.0.0.0:2379")
	m.listen(m.pods[etcd], "0.0.0.0:2380")
	m.listen(m.pods[kas], "0.0.0.0:6443")
	m.listen(m.pods[neighbour], "0.0.0.0:6443")
	m.listen(m.id, "10.244.0.1:5000")
	m.listen(m.id, "10.244.0.1:6443")
	g := NewWithT(t)
	g.Expect(m.dial(m.pods[neighbour], etcd+":2379")).To(Succeed(), "or this test shows nothing")
	has := func() string {
		out, err := m.program(t.Context(), m.id, "has", "").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}
	g.Expect(has()).To(Equal("false false"), "which chains are looked for")
	m.enforce(s)
	g.Expect(has()).To(Equal("true true"))
	for name, tc := range map[string]struct {
		from, to string
		refused  bool
	}{
		"When the API server calls its etcd it should get through":                             {from: m.pods[kas], to: etcd + ":2379"},
		"When the API server calls another port of etcd it should be refused":                  {from: m.pods[kas], to: etcd + ":2380", refused: true},
		"When a neighbour calls etcd it should be refused":                                     {from: m.pods[neighbour], to: etcd + ":2379", refused: true},
		"When a neighbour calls what is published it should get through":                       {from: m.pods[neighbour], to: kas + ":6443"},
		"When a pod calls what it has no leave to it should be refused, though the other does": {from: m.pods[kas], to: neighbour + ":6443", refused: true},
		"When a pod that may not call at all answers it should be heard":                       {from: m.pods[kas], to: etcd + ":2379"},
		"When a pod calls the machine where it may it should get through":                      {from: m.pods[kas], to: "10.244.0.1:5000"},
		"When a pod calls the machine elsewhere it should be refused":                          {from: m.pods[kas], to: "10.244.0.1:6443", refused: true},
		"When a pod without policies calls the machine it should get through":                  {from: m.pods[neighbour], to: "10.244.0.1:6443"},
		"When the machine calls a pod it should get through":                                   {from: m.id, to: etcd + ":2380"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := m.dial(tc.from, tc.to)
			if tc.refused {
				g.Expect(err).To(MatchError(ContainSubstring("refused")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("When policies go everybody should get through", func(t *testing.T) {
		g := NewWithT(t)
		s.Policies = nil
		m.enforce(s)
		g.Expect(m.dial(m.pods[neighbour], etcd+":2379")).To(Succeed())
	})
	t.Run("When pods talk IPv6 beside the policies it should be dropped", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(exec.Command("ip", "netns", "exec", m.pods[neighbour], "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=0").Run()).To(Succeed())
		for address, ns := range map[string]string{"fd00::2": m.pods[etcd], "fd00::4": m.pods[neighbour]} {
			if exec.Command("ip", "netns", "exec", ns, "ip", "address", "add", address+"/64", "dev", "eth0", "nodad").Run() != nil {
				t.Skip("this kernel has no IPv6")
			}
		}
		m.listen(m.pods[etcd], "[fd00::2]:9999")
		g.Expect(m.dial(m.pods[neighbour], "[fd00::2]:9999")).NotTo(Succeed())
		script := "delete table bridge " + Table + "\n"
		m.do(&script, "ip", "netns", "exec", m.id, "nft", "-f", "-")
		g.Eventually(func() error { return m.dial(m.pods[neighbour], "[fd00::2]:9999") }).WithTimeout(30*time.Second).Should(Succeed(), "or this test shows nothing")
	})
}
