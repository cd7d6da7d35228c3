package install

import (
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/cli/connect"
)

func TestInventory(t *testing.T) {
	g := NewWithT(t)
	inventory, err := Inventory("operators")
	g.Expect(err).NotTo(HaveOccurred())
	known := map[string]bool{}
	for _, obj := range inventory {
		key, err := identify(connect.Scheme(), obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(known).NotTo(HaveKey(key))
		known[key] = true
	}
	for name, change := range map[string]func(*Options){
		"When nothing is asked for":                 func(*Options) {},
		"When standard types are asked for":         func(o *Options) { o.PrivateCAPI = CAPIStandard },
		"When there are clusters of standard types": func(o *Options) { o.capi = &capiChoice{Private: true, Legacy: true} },
		"When a developer runs the operator":        func(o *Options) { o.Development, o.OpenShift, o.TechPreview = true, true, true },
		"When there is no native sidecar":           func(o *Options) { o.NoNativeSidecars, o.PackageOperator = true, true },
		"When Google keeps names": func(o *Options) {
			o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.Monitoring.Objects, o.Monitoring.SLOAlerts = dnsGoogle, "example.com", true, true
		},
	} {
		t.Run(name+" all of it should be in the inventory", func(t *testing.T) {
			g := NewWithT(t)
			o := NewOptions()
			o.Namespace, o.Image = "operators", "x"
			change(&o)
			objs, err := Objects(o)
			g.Expect(err).NotTo(HaveOccurred())
			for _, obj := range objs {
				key, err := identify(connect.Scheme(), obj)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(known).To(HaveKey(key))
			}
		})
	}
}
