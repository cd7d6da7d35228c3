package network

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

// keep looks after the network of the namespace that it runs in, with a clock that runs fast, until it is killed.
func keep(egress bool) error {
	clk := clocktesting.NewFakeClock(time.Now())
	log := funcr.New(func(_, args string) { fmt.Println(args) }, funcr.Options{})
	k := &Keeper{Options: Options{PodEgress: egress}, Clock: clk, Log: logr.New(log.GetSink()), RestartProxy: func() {
		_ = exec.Command("nft", "add table ip restarted").Run() // the test looks for it
	}}
	fmt.Println("listening")
	go func() {
		for range time.Tick(50 * time.Millisecond) {
			clk.Step(look)
		}
	}()
	k.Run(context.Background())
	return nil
}

func TestKeep(t *testing.T) {
	// nft runs in the host's namespace of the test.
	nft := func(m *machine, args ...string) (string, error) {
		out, err := exec.Command("ip", append([]string{"netns", "exec", m.host, "nft"}, args...)...).CombinedOutput()
		return string(out), err
	}
	for name, does := range map[string][]string{
		"When a firewall is loaded anew it should make the packet filter's table again":     {"nft flush ruleset"},
		"When a container engine drops what is forwarded it should let pods pass":           {"iptables -P FORWARD DROP"},
		"When a firewall drops what comes in it should let pods reach the node":             {"iptables -P INPUT DROP"},
		"When somebody switches forwarding off pods should reach beyond the machine again":  {"sysctl -qw net.ipv4.ip_forward=0"},
		"When somebody takes the bridge's address away pods should reach beyond again":      {"ip address flush dev " + Bridge},
		"When a firewall is loaded anew that drops what is forwarded it should see to both": {"nft flush ruleset", "iptables -P FORWARD DROP"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t, Options{PodEgress: true})
			m.listen(m.beyond, "192.0.2.2:8080")
			m.listen(m.host, NodeIP+":8080")
			m.start(m.host, "keep", "egress")
			for _, command := range does {
				m.in(m.host, command)
			}
			g.Eventually(func(g Gomega) {
				g.Expect(m.dial(m.pod, "192.0.2.2:8080")).To(Equal("192.0.2.1"))
				g.Expect(m.dial(m.pod, NodeIP+":8080")).To(Equal("10.244.0.2"))
				g.Expect(nft(m, "list", "table", "inet", Table)).To(ContainSubstring("chain leaving"))
			}).WithTimeout(time.Minute).Should(Succeed())
		})
	}
	t.Run("When firewalld starts, and loads its rules anew, pods should reach the node again", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{PodEgress: true})
		m.listen(m.host, NodeIP+":8080")
		reload := startFirewalld(t, m)
		m.start(m.host, "keep", "egress")
		for range 2 {
			g.Eventually(func() (string, error) { return m.dial(m.pod, NodeIP+":8080") }).WithTimeout(time.Minute).Should(Equal("10.244.0.2"))
			reload()
		}
	})
	t.Run("When the rules of kube-proxy go it should start it anew, and not before there were any", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{})
		m.start(m.host, "keep", "inside")
		rules := "add table ip " + ProxyTable + "; add chain ip " + ProxyTable + " services"
		restarted := func() string {
			out, err := nft(m, "list", "tables")
			g.Expect(err).NotTo(HaveOccurred())
			return out
		}
		g.Expect(nft(m, rules)).To(BeEmpty())
		g.Consistently(restarted).WithTimeout(time.Second).ShouldNot(ContainSubstring("restarted"))
		g.Expect(nft(m, "delete", "table", "ip", ProxyTable)).To(BeEmpty())
		g.Eventually(restarted).WithTimeout(time.Minute).Should(ContainSubstring("restarted"))
	})
}

func TestChainRequest(t *testing.T) {
	t.Run("When names have any length each attribute should end with a zero, at a multiple of four bytes", func(t *testing.T) {
		g := NewWithT(t)
		for n := 1; n < 9; n++ {
			b := chainRequest(FamilyInet, strings.Repeat("x", n), "y")
			g.Expect(len(b) % 4).To(BeZero())
			g.Expect(b[16+4+4+n]).To(BeZero())
		}
	})
}
