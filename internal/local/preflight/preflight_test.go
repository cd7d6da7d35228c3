package preflight

import (
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// fine is a machine that lacks nothing.
func fine(change ...func(*Facts)) Facts {
	f := Facts{OS: "linux", DiskFree: 100 << 30, MemAvailable: 8 << 30, StateDir: "/srv/.local", SocketPath: 60}
	for _, c := range change {
		c(&f)
	}
	return f
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		what   string
		remedy string
	}{
		"When it is no Linux it should say what to use":                {func(f *Facts) { f.OS = "plan9" }, "this is plan9", "Debian 12"},
		"When the user is not root it should name sudo":                {func(f *Facts) { f.UID = 1000 }, "not root", "sudo"},
		"When another instance runs it should say how to take it down": {func(f *Facts) { f.OtherState = "/other" }, "/other", "hypershift local down --state-dir /other"},
		"When the state folder is somebody's it should name the flag": {func(f *Facts) { f.Foreign = []string{"a", "b", "c", "d", "e"} },
			"the state folder /srv/.local holds what local mode did not make, which would be removed with it: a, b, c and 2 more", "--state-dir"},
		"When control groups cannot be used it should say why":              {func(f *Facts) { f.CgroupErr = "the controller pids is not there" }, "pids is not there", "/sys/fs/cgroup"},
		"When overlays cannot be mounted it should name other folders":      {func(f *Facts) { f.OverlayErr = "invalid argument" }, "invalid argument", "--state-dir"},
		"When namespaces cannot be made it should name the capability":      {func(f *Facts) { f.NamespaceErr = "not permitted" }, "not permitted", "CAP_SYS_ADMIN"},
		"When bridged packets cannot be filtered it should name the module": {func(f *Facts) { f.NetfilterErr = "no br_netfilter" }, "no br_netfilter", "modprobe br_netfilter"},
		"When a firewall can't be asked to let pods pass it should say how to start it, or get rid of it": {func(f *Facts) { f.FirewallErr = "the rules of firewalld are in force, but it doesn't answer" },
			"firewalld are in force", "systemctl start firewalld; or remove its rules: nft delete table inet firewalld"},
		"When ports are taken it should name all of them":                 {func(f *Facts) { f.BusyPorts = []string{"127.0.0.1:5000", "127.0.0.1:2379"} }, "127.0.0.1:5000, 127.0.0.1:2379", "ss -ltnp"},
		"When routes overlap it should name them":                         {func(f *Facts) { f.Routes = []string{"10.0.0.0/8 dev tun0"} }, "10.0.0.0/8 dev tun0", "VPN"},
		"When the disk is full it should say how much is needed":          {func(f *Facts) { f.DiskFree = 1 << 30 }, "only 1.0 GiB of disk are free for /srv/.local, and it takes 6.0 GiB", "--state-dir"},
		"When memory is short it should say how much is needed":           {func(f *Facts) { f.MemAvailable = 1 << 30 }, "only 1.0 GiB of memory", "more memory"},
		"When the path is too long for sockets it should say by how much": {func(f *Facts) { f.SocketPath = 110 }, "3 bytes too long", "--state-dir"},
		"When there is no compiler it should say where to get it":         {func(f *Facts) { f.GoMissing = true }, "no Go compiler", "https://go.dev/dl"},
		"When there is no apt-get it should name the packages": {func(f *Facts) { f.AptMissing, f.Missing = true, []string{"runc", "nftables"} },
			"no apt-get", "runc nftables"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var got *Error
			g.Expect(errors.As(Check(fine(tc.change)), &got)).To(BeTrue())
			g.Expect(got.Problems).To(HaveLen(1))
			g.Expect(got.Problems[0].What).To(ContainSubstring(tc.what))
			g.Expect(got.Problems[0].Remedy).To(ContainSubstring(tc.remedy))
		})
	}

	t.Run("When nothing is missing it should say nothing", func(t *testing.T) {
		NewWithT(t).Expect(Check(fine())).To(Succeed())
	})
	t.Run("When much is missing it should name everything at once", func(t *testing.T) {
		g := NewWithT(t)
		err := Check(Facts{OS: "plan9", UID: 1, BusyPorts: []string{"x"}, SocketPath: 200})
		g.Expect(err).To(MatchError(And(
			ContainSubstring("lacks 6 thing(s); nothing has been changed"), ContainSubstring("plan9"), ContainSubstring("not root"),
			ContainSubstring("in use"), ContainSubstring("disk"), ContainSubstring("memory"), ContainSubstring("too long"))))
	})
}

func TestBusy(t *testing.T) {
	t.Run("When something listens it should be found, on the address itself and on all addresses", func(t *testing.T) {
		g := NewWithT(t)
		one, err := net.Listen("tcp4", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer one.Close()
		all, err := net.Listen("tcp4", "0.0.0.0:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer all.Close()
		_, onePort, _ := net.SplitHostPort(one.Addr().String())
		_, allPort, _ := net.SplitHostPort(all.Addr().String())
		// 192.0.2.77 is an address that no machine has.
		g.Expect(busy([]string{one.Addr().String(), "192.0.2.77:" + allPort, "192.0.2.77:" + onePort})).To(
			Equal([]string{one.Addr().String(), "192.0.2.77:" + allPort}))
	})
}

func TestParseRoutes(t *testing.T) {
	t.Run("When the table has a heading, a default route and networks it should read them", func(t *testing.T) {
		g := NewWithT(t)
		table := "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
			"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
			"tun0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
		g.Expect(parseRoutes([]byte(table))).To(Equal([]route{
			{netip.MustParsePrefix("0.0.0.0/0"), "eth0"},
			{netip.MustParsePrefix("10.244.0.0/16"), "tun0"},
		}))
	})
}

func FuzzParseRoutes(f *testing.F) {
	f.Add("tun0\t0000F40A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
	f.Fuzz(func(t *testing.T, table string) {
		for _, r := range parseRoutes([]byte(table)) {
			if !r.dst.IsValid() {
				t.Fatalf("invalid prefix from %q", table)
			}
		}
	})
}

func TestExisting(t *testing.T) {
	t.Run("When folders are missing it should give the nearest one", func(t *testing.T) {
		dir := t.TempDir()
		NewWithT(t).Expect(existing(filepath.Join(dir, "a", "b"))).To(Equal(dir))
	})
}
