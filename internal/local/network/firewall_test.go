package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// drop has a machine drop what no rule accepts, as ufw does. What belongs to a connection, and what the machine tells itself, passes.
func drop(chain string) []string {
	out := []string{"iptables -P " + chain + " DROP", "iptables -A " + chain + " -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"}
	switch chain {
	case "INPUT":
		out = append(out, "iptables -A INPUT -i lo -j ACCEPT")
	case "OUTPUT":
		out = append(out, "iptables -A OUTPUT -o lo -j ACCEPT")
	}
	return out
}

// service has kube-proxy's part: what goes to a service ends at an address.
func service(from, to string) []string {
	ip, port, _ := strings.Cut(from, ":")
	return []string{
		"nft add table ip services", "nft add chain ip services nat { type nat hook prerouting priority dstnat ; }",
		"nft add rule ip services nat ip daddr " + ip + " tcp dport " + port + " dnat to " + to,
	}
}

func TestFirewallDrops(t *testing.T) {
	for name, tc := range map[string]struct {
		opts     Options
		firewall []string
		from, to func(*machine) string // who calls, and who listens
		listens  string
		calls    string
		chain    string
		ours     int // rules in the chain
	}{
		"When the machine drops what it forwards pods should still reach beyond": {
			Options{PodEgress: true}, drop("FORWARD"), pod, beyond, "192.0.2.2:8080", "192.0.2.2:8080", "FORWARD", 2},
		"When the machine rejects what it forwards pods should still reach beyond": {
			Options{PodEgress: true}, []string{"iptables -A FORWARD -j REJECT --reject-with icmp-host-prohibited"}, pod, beyond, "192.0.2.2:8080", "192.0.2.2:8080", "FORWARD", 2},
		"When the machine drops what comes in pods should still reach the registry on the node": {
			Options{}, drop("INPUT"), pod, host, NodeIP + ":8080", NodeIP + ":8080", "INPUT", 1},
		"When the machine drops what comes in pods should still reach the API server by its service": {
			Options{}, append(drop("INPUT"), service("10.96.0.1:443", NodeIP+":8080")...), pod, host, NodeIP + ":8080", "10.96.0.1:443", "INPUT", 1},
		"When the machine rejects what comes in pods should still reach the node": {
			Options{}, []string{"iptables -A INPUT -i lo -j ACCEPT", "iptables -A INPUT -j REJECT --reject-with icmp-host-prohibited"}, pod, host, NodeIP + ":8080", NodeIP + ":8080", "INPUT", 1},
		"When the machine drops what it sends itself it should still reach pods": {
			Options{}, drop("OUTPUT"), host, pod, "10.244.0.2:8080", "10.244.0.2:8080", "OUTPUT", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t, tc.opts, tc.firewall...)
			m.listen(tc.to(m), tc.listens)
			before := m.chain(tc.chain)
			_, err := m.dial(tc.from(m), tc.calls)
			g.Expect(err).To(HaveOccurred(), "or this test shows nothing")
			for _, changed := range []bool{true, false} { // again: nothing twice
				g.Expect(letPass(t.Context(), tc.opts, m.run)).To(Equal(changed))
			}
			_, err = m.dial(tc.from(m), tc.calls)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Count(m.chain(tc.chain), firewallComment)).To(Equal(tc.ours), m.chain(tc.chain))

			g.Expect(leave(t.Context(), m.run)).To(Succeed())
			g.Expect(m.chain(tc.chain)).To(Equal(before))
		})
	}
}

func pod(m *machine) string    { return m.pod }
func host(m *machine) string   { return m.host }
func beyond(m *machine) string { return m.beyond }

func TestFirewallAmongPods(t *testing.T) {
	t.Run("When the machine drops what it forwards pods should still reach each other", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{}, "iptables -P FORWARD DROP")
		other := m.pod + "2"
		m.do("ip", "netns", "add", other)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", other).Run() })
		m.in(m.host, "ip link add pod2 type veth peer name eth0 netns "+other)
		m.in(m.host, "ip link set pod2 master "+Bridge+" up")
		m.in(other, "ip link set eth0 up")
		m.in(other, "ip address add 10.244.0.3/24 dev eth0")
		m.listen(other, "10.244.0.3:8080")
		g.Expect(letPass(t.Context(), Options{}, m.run)).To(BeTrue())
		g.Expect(m.dial(m.pod, "10.244.0.3:8080")).To(Equal("10.244.0.2"))
	})
	t.Run("When the machine lets everything pass its chains should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{PodEgress: true})
		g.Expect(letPass(t.Context(), Options{PodEgress: true}, m.run)).To(BeFalse())
		for _, chain := range []string{"INPUT", "FORWARD", "OUTPUT"} {
			g.Expect(m.chain(chain)).To(Equal("-P " + chain + " ACCEPT\n"))
		}
	})
}

// firewalld is a table as firewalld 1.3 makes it, with a zone public, in which nothing is allowed, for every link that has none.
const firewalld = `table inet firewalld {}
delete table inet firewalld
table inet firewalld {
  chain filter_INPUT { type filter hook input priority filter + 10; policy accept;
    ct state { established, related } accept; ct status dnat accept; iifname "lo" accept; jump filter_INPUT_ZONES; reject with icmpx admin-prohibited; }
  chain filter_FORWARD { type filter hook forward priority filter + 10; policy accept;
    ct state { established, related } accept; ct status dnat accept; iifname "lo" accept; jump filter_FORWARD_ZONES; reject with icmpx admin-prohibited; }
  chain filter_INPUT_ZONES { goto filter_IN_public; }
  chain filter_FORWARD_ZONES { goto filter_FWD_public; }
  chain filter_IN_public { tcp dport 22 accept; }
  chain filter_FWD_public { reject with icmpx admin-prohibited; }
  chain filter_IN_trusted { accept; }
  chain filter_FWD_trusted { accept; }
}
`

// startFirewalld gives a machine the rules of firewalld, and the PATH a firewall-cmd that changes them. It returns what loads them anew.
func startFirewalld(t *testing.T, m *machine) (reload func()) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules")
	g.Expect(os.WriteFile(rules, []byte(firewalld), 0o600)).To(Succeed())
	script := `#!/bin/sh
case "$*" in
"--zone=trusted --change-interface=hcp0")
  nft insert rule inet firewalld filter_INPUT_ZONES iifname hcp0 goto filter_IN_trusted
  nft insert rule inet firewalld filter_FORWARD_ZONES iifname hcp0 goto filter_FWD_trusted;;
"--zone=trusted --remove-interface=hcp0") nft -f ` + rules + `;;
--state) ;;
*) exit 2;;
esac
`
	firewallCmdIs(t, dir, script)
	reload = func() { m.in(m.host, "nft -f "+rules) }
	reload()
	return reload
}

func firewallCmdIs(t *testing.T, dir, script string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, firewallCmd), []byte(script), 0o700)).To(Succeed())
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestFirewalld(t *testing.T) {
	t.Run("When firewalld rejects what has no zone pods should still reach the node and beyond, and nothing be left afterwards", func(t *testing.T) {
		g := NewWithT(t)
		opts := Options{PodEgress: true}
		m := newMachine(t, opts)
		startFirewalld(t, m)
		before, err := firewalldRules(t.Context(), m.run)
		g.Expect(err).NotTo(HaveOccurred())
		m.listen(m.host, NodeIP+":8080")
		m.listen(m.beyond, "192.0.2.2:8080")
		for _, address := range []string{NodeIP + ":8080", "192.0.2.2:8080"} {
			_, err := m.dial(m.pod, address)
			g.Expect(err).To(HaveOccurred(), "or this test shows nothing")
		}
		g.Expect(tryFirewalld(t.Context(), m.run)).To(Succeed())
		for _, changed := range []bool{true, false} {
			g.Expect(letPass(t.Context(), opts, m.run)).To(Equal(changed))
		}
		g.Expect(m.dial(m.pod, NodeIP+":8080")).To(Equal("10.244.0.2"))
		g.Expect(m.dial(m.pod, "192.0.2.2:8080")).To(Equal("192.0.2.1"))
		for range 2 {
			g.Expect(leave(t.Context(), m.run)).To(Succeed())
			g.Expect(firewalldRules(t.Context(), m.run)).To(Equal(before))
		}
	})
	t.Run("When the rules of firewalld are there without it it should say so, and still go", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{})
		startFirewalld(t, m)
		g.Expect(letPass(t.Context(), Options{}, m.run)).To(BeTrue())
		firewallCmdIs(t, t.TempDir(), "#!/bin/sh\necho not running >&2\nexit 252\n")
		g.Expect(tryFirewalld(t.Context(), m.run)).To(Succeed(), "it has been asked already")
		g.Expect(leave(t.Context(), m.run)).To(Succeed())
		m.in(m.host, "nft flush chain inet firewalld filter_INPUT_ZONES")
		g.Expect(tryFirewalld(t.Context(), m.run)).To(MatchError(And(ContainSubstring("firewalld"), ContainSubstring("not running"))))
		_, err := letPass(t.Context(), Options{}, m.run)
		g.Expect(err).To(MatchError(And(ContainSubstring("zone trusted of firewalld"), ContainSubstring("not running"))))
	})
	t.Run("When there is no firewalld it should not be asked", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t, Options{})
		g.Expect(trust(t.Context(), m.run)).To(BeFalse())
		g.Expect(distrust(t.Context(), m.run)).To(Succeed())
	})
}
