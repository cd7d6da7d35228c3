package teardown

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var names = Names{Bridge: "hcp0", Tables: []string{"hypershift_local"}, Shared: []string{"kube-proxy"}, Self: 42}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		obs  Observed
		want Plan
	}{
		"When nothing is there it should do nothing": {
			obs: Observed{StateDir: "/srv/.local", Mounts: []string{"/", "/proc"}, Links: []Link{{Name: "eth0"}}, Tables: []string{"ip filter"}},
		},
		"When mounts are stacked it should take the last one first, and only those below the state folder": {
			obs:  Observed{StateDir: "/srv/.local", Mounts: []string{"/", "/srv/.local/a", "/srv/.local-other/b", "/srv/.local/a/b", "/srv/.localx"}},
			want: Plan{Unmount: []string{"/srv/.local/a/b", "/srv/.local/a"}},
		},
		"When the caller is in the group it should not kill itself": {
			obs:  Observed{StateDir: "/s", Processes: []Process{{1, "init"}, {42, "hypershift"}, {43, "etcd"}}, Groups: 2},
			want: Plan{Kill: []Process{{43, "etcd"}}, Groups: true},
		},
		"When pods hang on the bridge it should remove their links before it, and no others": {
			obs:  Observed{StateDir: "/s", Links: []Link{{"eth0", ""}, {"hcp0", ""}, {"vethb", "hcp0"}, {"veth9", "docker0"}, {"vetha", "hcp0"}}},
			want: Plan{Links: []string{"vetha", "vethb", "hcp0"}},
		},
		"When tables of others are there it should leave them": {
			obs:  Observed{StateDir: "/s", Tables: []string{"ip nat", "ip6 kube-proxy", "ip kube-proxy", "inet hypershift_local", "inet kube-proxy-other"}},
			want: Plan{Tables: []string{"inet hypershift_local", "ip kube-proxy", "ip6 kube-proxy"}},
		},
		"When nothing of ours is there it should leave the table of somebody's kube-proxy": {
			obs:  Observed{StateDir: "/srv/.local", StateDirs: []string{"/srv/.local"}, Links: []Link{{Name: "cni0"}, {"veth9", "cni0"}}, Tables: []string{"ip kube-proxy", "ip6 kube-proxy"}},
			want: Plan{State: "/srv/.local"},
		},
		"When nothing but the control group is left it should take the table of kube-proxy": {
			obs: Observed{StateDir: "/s", Groups: 1, Tables: []string{"ip kube-proxy"}}, want: Plan{Groups: true, Tables: []string{"ip kube-proxy"}},
		},
		"When nothing but the bridge is left it should take the table of kube-proxy": {
			obs: Observed{StateDir: "/s", Links: []Link{{"hcp0", ""}}, Tables: []string{"ip kube-proxy"}}, want: Plan{Links: []string{"hcp0"}, Tables: []string{"ip kube-proxy"}},
		},
		"When it is known that local mode was here it should take the table of kube-proxy": {
			obs: Observed{StateDir: "/s", Ours: true, Tables: []string{"ip kube-proxy"}}, want: Plan{Tables: []string{"ip kube-proxy"}},
		},
		"When the state folder is there it should be named": {
			obs:  Observed{StateDir: "/srv/.local", StateDirs: []string{"/srv/.local"}},
			want: Plan{State: "/srv/.local"},
		},
		"When the state folder is the root folder it should unmount nothing": {
			obs: Observed{StateDir: "/", Mounts: []string{"/", "/proc", "/home"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			got := planFor(tc.obs, names)
			g.Expect(got).To(BeComparableTo(tc.want))
			g.Expect(got.Empty()).To(Equal(len(got.Summary()) == 0))
		})
	}
}

// TestPlanTouchesOnlyItsOwn checks for any machine that nothing of others is planned to go.
func TestPlanTouchesOnlyItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.Custom(func(t *rapid.T) string {
			return "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"srv", ".local", ".localx", "a", ""}), 0, 4).Draw(t, "elements"), "/")
		})
		o := Observed{StateDir: path.Draw(t, "state"), Mounts: rapid.SliceOf(path).Draw(t, "mounts")}
		for _, n := range rapid.SliceOf(rapid.SampledFrom([]string{"hcp0", "eth0", "veth1", "docker0"})).Draw(t, "links") {
			o.Links = append(o.Links, Link{Name: n, Master: rapid.SampledFrom([]string{"", "hcp0", "docker0"}).Draw(t, "master")})
		}
		o.Tables = rapid.SliceOf(rapid.SampledFrom([]string{"ip kube-proxy", "ip nat", "inet hypershift_local"})).Draw(t, "tables")
		p := planFor(o, names)
		ours := slices.Contains(o.Tables, "inet hypershift_local") || slices.ContainsFunc(o.Links, func(l Link) bool { return l.Name == "hcp0" })
		for _, table := range p.Tables {
			if table == "ip nat" || !ours {
				t.Fatalf("deletes table %s beside links %v and tables %v", table, o.Links, o.Tables)
			}
		}
		for _, m := range p.Unmount {
			if !strings.HasPrefix(m, strings.TrimSuffix(o.StateDir, "/")+"/") || o.StateDir == "/" {
				t.Fatalf("unmounts %s with state folder %s", m, o.StateDir)
			}
		}
		for _, l := range p.Links {
			if l != "hcp0" && !slices.ContainsFunc(o.Links, func(x Link) bool { return x.Name == l && x.Master == "hcp0" }) {
				t.Fatalf("deletes link %s of %v", l, o.Links)
			}
		}
	})
}

func TestSummary(t *testing.T) {
	t.Run("When something is removed it should be counted and named", func(t *testing.T) {
		p := Plan{Kill: []Process{{2, "etcd"}, {3, "shim"}, {4, "shim"}}, Unmount: []string{"/a"}, Links: []string{"hcp0"}, Groups: true, State: "/s"}
		NewWithT(t).Expect(p.Summary()).To(Equal([]string{
			"3 process(es): 1 etcd, 2 shim", "1 mount(s)", "1 network link(s): hcp0", "the control groups", "the state folder /s",
		}))
	})
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a\040b`: "/a b", `/a\134b`: `/a\b`, "/plain": "/plain", `/cut\04`: `/cut\04`, `/x\999`: `/x\999`} {
		NewWithT(t).Expect(unescape(in)).To(Equal(want), "When a mount point is %q it should be read right", in)
	}
}
