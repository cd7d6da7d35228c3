package local

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/components"
)

// kernel is a folder like /proc/sys.
type kernel string

func newKernel(t *testing.T, boot string) kernel {
	t.Helper()
	k := kernel(t.TempDir())
	k.set(t, map[string]string{bootID: boot, "vm/overcommit_memory": "0", "vm/panic_on_oom": "0", "kernel/panic": "0", "kernel/panic_on_oops": "0", "kernel/keys/root_maxkeys": "500",
		"kernel/keys/root_maxbytes": "600", ipForward: "0"})
	return k
}

func (k kernel) set(t *testing.T, values map[string]string) {
	t.Helper()
	g := NewWithT(t)
	for key, value := range values {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(string(k), key)), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(string(k), key), []byte(value+"\n"), 0o600)).To(Succeed())
	}
}

// kubelet changes what the kubelet changes.
func (k kernel) kubelet(t *testing.T) {
	t.Helper()
	k.set(t, map[string]string{"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1", "kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000"})
}

func TestRestoreHost(t *testing.T) {
	all := []string{"vm.overcommit_memory", "kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes"}
	up := func(t *testing.T, p components.Paths, k kernel, podEgress bool) {
		t.Helper()
		NewWithT(t).Expect(rememberHost(p, string(k), podEgress)).To(Succeed())
		k.kubelet(t)
		if podEgress {
			k.set(t, map[string]string{ipForward: "1"})
		}
	}
	down := func(p components.Paths, k kernel) ([]string, error) { return restoreHost(p, string(k)) }

	t.Run("When settings were changed it should put all of them back", func(t *testing.T) {
		g := NewWithT(t)
		p, k := components.Paths{State: t.TempDir()}, newKernel(t, "a")
		up(t, p, k, true)
		up(t, p, k, true) // again: it remembers what was first
		g.Expect(down(p, k)).To(Equal(append(all[:5:5], "net.ipv4.ip_forward")))
		g.Expect(readSetting(string(k), "kernel/keys/root_maxkeys")).To(Equal("500"))
		g.Expect(readSetting(string(k), ipForward)).To(Equal("0"))
		g.Expect(down(p, k)).To(BeEmpty(), "again")
	})
	t.Run("When somebody else switched forwarding on it should stay on", func(t *testing.T) {
		g := NewWithT(t)
		p, k := components.Paths{State: t.TempDir()}, newKernel(t, "a")
		up(t, p, k, false)
		k.set(t, map[string]string{ipForward: "1"}) // as a container engine does when it starts
		up(t, p, k, true)                           // pods may reach beyond only now
		g.Expect(down(p, k)).To(Equal(all))
		g.Expect(readSetting(string(k), ipForward)).To(Equal("1"))
	})
	t.Run("When somebody set another value since it should leave that", func(t *testing.T) {
		g := NewWithT(t)
		p, k := components.Paths{State: t.TempDir()}, newKernel(t, "a")
		up(t, p, k, false)
		k.set(t, map[string]string{"kernel/panic": "60"})
		g.Expect(down(p, k)).NotTo(ContainElement("kernel.panic"))
		g.Expect(readSetting(string(k), "kernel/panic")).To(Equal("60"))
	})
	t.Run("When the machine started anew it should remember anew", func(t *testing.T) {
		g := NewWithT(t)
		p, k := components.Paths{State: t.TempDir()}, newKernel(t, "a")
		up(t, p, k, true)
		k = newKernel(t, "b")
		k.set(t, map[string]string{"kernel/panic": "30", ipForward: "1"})
		g.Expect(down(p, k)).To(BeEmpty(), "before up nothing has been changed")
		up(t, p, k, true)
		g.Expect(down(p, k)).To(Equal(all))
		g.Expect(readSetting(string(k), "kernel/panic")).To(Equal("30"))
		g.Expect(readSetting(string(k), ipForward)).To(Equal("1"))
	})
	t.Run("When an older version remembered it should put back all but forwarding", func(t *testing.T) {
		g := NewWithT(t)
		p, k := folder(t, map[string]string{"host.json": `{"sysctls": {"vm/overcommit_memory": "0", "net/ipv4/ip_forward": "0"}}`}), newKernel(t, "a")
		k.kubelet(t)
		k.set(t, map[string]string{ipForward: "1"})
		up(t, p, k, false)
		g.Expect(down(p, k)).To(Equal([]string{"vm.overcommit_memory"}))
	})
	t.Run("When nothing was remembered it should restore nothing", func(t *testing.T) {
		NewWithT(t).Expect(restoreHost(components.Paths{State: t.TempDir()}, "/nowhere")).To(BeEmpty())
	})
	t.Run("When this machine's own settings are remembered there should be something to recognise the folder by", func(t *testing.T) {
		g := NewWithT(t)
		p := components.Paths{State: t.TempDir()}
		g.Expect(rememberHost(p, kernelSettings, true)).To(Succeed())
		g.Expect(remembersHost(p)).To(BeTrue())
	})
}
