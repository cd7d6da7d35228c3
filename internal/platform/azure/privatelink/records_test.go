package privatelink

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

// TestRecords has somebody else write into zones, too.
func TestRecords(t *testing.T) {
	c := start(t)
	settled := func(t *testing.T) (*world, *WithT) {
		w, g := newWorld(t, c), NewWithT(t)
		g.Expect(w.run(c)).To(Succeed())
		return w, g
	}
	for name, metadata := range map[string]map[string]*string{"a user": nil, "another hosted cluster": {recordOwner: to.Ptr("other-fghij")}} {
		t.Run("When "+name+" has a record of a name it should stay, a condition say so, and the rest be removed without it", func(t *testing.T) {
			w, g := newWorld(t, c), NewWithT(t)
			theirs := &armprivatedns.RecordSet{Name: to.Ptr("api-demo"), Type: to.Ptr("Microsoft.Network/privateDnsZones/A"), Etag: to.Ptr("theirs"), Properties: &armprivatedns.RecordSetProperties{
				TTL: to.Ptr[int64](60), ARecords: []*armprivatedns.ARecord{{IPv4Address: to.Ptr("172.16.0.1")}}, Metadata: metadata}}
			w.azure.zones["private.example.com"] = &armprivatedns.PrivateZone{}
			w.azure.records["private.example.com/api-demo"] = theirs
			g.Expect(w.run(c)).To(Succeed())
			g.Expect(w.azure.records["private.example.com/api-demo"]).To(BeIdenticalTo(theirs))
			g.Expect(conditions.Get(w.router().Status.Conditions, "AzurePrivateDNSAvailable")).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AzureError"),
				HaveField("Message", And(ContainSubstring("record api-demo of private zone private.example.com"), ContainSubstring("172.16.0.1"), ContainSubstring("remove")))))
			testenv.ExpectQuiet(t, c, w.run)
			w.drop("private-router")
			g.Expect(w.run(c)).To(Succeed())
			g.Expect(w.azure.records).To(Equal(map[string]*armprivatedns.RecordSet{"private.example.com/api-demo": theirs}))
		})
	}
	t.Run("When a user's record leads to the endpoint already it should stay as it is", func(t *testing.T) {
		w, g := settled(t)
		r := w.azure.records["private.example.com/api-demo"]
		r.Properties.Metadata, r.Properties.TTL = nil, to.Ptr[int64](60)
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.records["private.example.com/api-demo"]).To(BeIdenticalTo(r))
		w.connected(t)
	})
	t.Run("When somebody makes a record at the same time it should stay", func(t *testing.T) {
		w, g := newWorld(t, c), NewWithT(t)
		theirs := &armprivatedns.RecordSet{Name: to.Ptr("api"), Etag: to.Ptr("theirs"), Properties: &armprivatedns.RecordSetProperties{ARecords: []*armprivatedns.ARecord{{IPv4Address: to.Ptr("172.16.0.1")}}}}
		w.azure.race = func() { w.azure.records["demo.hypershift.local/api"] = theirs }
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.records["demo.hypershift.local/api"]).To(BeIdenticalTo(theirs))
		g.Expect(conditions.Get(w.router().Status.Conditions, "AzurePrivateDNSAvailable")).To(HaveField("Message", ContainSubstring("record api of private zone demo.hypershift.local")))
	})
	t.Run("When a record of ours was changed it should be corrected, and what somebody made of it meanwhile stay", func(t *testing.T) {
		w, g := settled(t)
		const name = "private.example.com/api-demo"
		w.azure.records[name].Properties.ARecords[0].IPv4Address = to.Ptr("172.16.0.1")
		theirs := &armprivatedns.RecordSet{Etag: to.Ptr("theirs"), Properties: &armprivatedns.RecordSetProperties{ARecords: []*armprivatedns.ARecord{{IPv4Address: to.Ptr("172.16.0.2")}}}}
		w.azure.race = func() { w.azure.records[name] = theirs }
		g.Expect(w.run(c)).To(Succeed())
		g.Expect(w.azure.records[name]).To(BeIdenticalTo(theirs))
		delete(w.azure.records, name)
		g.Expect(w.run(c)).To(Succeed())
		w.azure.records[name].Properties.ARecords[0].IPv4Address = to.Ptr("172.16.0.1")
		g.Expect(w.run(c)).To(Succeed())
		w.connected(t)
	})
}
