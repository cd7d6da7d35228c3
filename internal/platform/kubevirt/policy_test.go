package kubevirt

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/netpolicy"
)

// anotherCluster keeps objects by their paths, and counts who writes. It stands for the few answers of an API server that are needed here.
type anotherCluster struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string]json.RawMessage
	writes  []string
	// forbidden are parts of paths that are refused.
	forbidden []string
}

func startAnother(t *testing.T) *anotherCluster {
	c := &anotherCluster{objects: map[string]json.RawMessage{}}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *anotherCluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.forbidden {
		if strings.Contains(r.Method+" "+r.URL.Path, f) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		c.writes = append(c.writes, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	}
	switch r.Method {
	case http.MethodPatch:
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			raw, err = yaml.YAMLToJSON(raw)
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.objects[r.URL.Path] = raw
	case http.MethodDelete:
		delete(c.objects, r.URL.Path)
		_, _ = io.WriteString(w, "{}")
		return
	}
	raw, found := c.objects[r.URL.Path]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(raw)
}

func (c *anotherCluster) kubeconfig() []byte {
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}))
	return fmt.Appendf(nil, `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
		"clusters":[{"name":"a","cluster":{"server":%q,"certificate-authority-data":%s}}],"users":[{"name":"a","user":{"token":"t"}}]}`, c.URL, ca)
}

// policy is one that is stored there; nil: none.
func (c *anotherCluster) policy(g Gomega, name string) *networkingv1.NetworkPolicy {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, found := c.objects["/apis/networking.k8s.io/v1/namespaces/vms/networkpolicies/"+name]
	if !found {
		return nil
	}
	p := &networkingv1.NetworkPolicy{}
	g.Expect(json.Unmarshal(raw, p)).To(Succeed())
	return p
}

// serves sets what the cluster says of its networks.
func (c *anotherCluster) serves(networks string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects["/apis/config.openshift.io/v1/networks/cluster"] = json.RawMessage(networks)
}

func (c *anotherCluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.writes
	c.writes = nil
	return list
}

func elsewhere(infraID string) *hyperv1.HostedCluster {
	hc := virtual()
	hc.Spec.InfraID = infraID
	hc.Spec.Platform.Kubevirt.Credentials = &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms", InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "infra", Key: "config"}}
	return hc
}

func specOf(hc *hyperv1.HostedCluster) func([]netip.Prefix) networkingv1.NetworkPolicySpec {
	return func(networks []netip.Prefix) networkingv1.NetworkPolicySpec {
		return netpolicy.MachinesElsewhere(netpolicy.Input{VirtualMachines: hc.Spec.InfraID, Payload: true, Management: netpolicy.Management{Networks: networks}})
	}
}

func TestPolicyElsewhere(t *testing.T) {
	other := startAnother(t)
	other.objects["/apis/config.openshift.io/v1/networks/cluster"] = json.RawMessage(`{"status":{"clusterNetwork":[{"cidr":"10.128.0.0/14"},{"cidr":"no network"}],"serviceNetwork":["172.30.0.0/16"]}}`)
	live := served(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "infra"}, Data: map[string][]byte{"config": other.kubeconfig()}})
	hc := elsewhere("demo-1")
	keep := func(t *testing.T, hc *hyperv1.HostedCluster) *metav1.Condition {
		return Platform{}.KeepPolicy(t.Context(), live, hc, "clusters-demo", specOf(hc))
	}
	well := HaveField("Status", metav1.ConditionTrue)
	t.Run("When virtual machines are in another cluster a policy there should keep them away from its pods and Services", func(t *testing.T) {
		g := NewWithT(t)
		c := keep(t, hc)
		g.Expect(c).To(HaveValue(And(well, HaveField("Type", "ValidKubeVirtInfraNetworkPolicyRBAC"), HaveField("Reason", "AsExpected"))))
		p := other.policy(g, "virt-launcher")
		g.Expect(p).NotTo(BeNil())
		g.Expect(p.Spec).To(Equal(specOf(hc)([]netip.Prefix{netip.MustParsePrefix("10.128.0.0/14"), netip.MustParsePrefix("172.30.0.0/16")})))
		raw, err := json.Marshal(p.Spec.Egress)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(And(ContainSubstring("10.128.0.0/14"), ContainSubstring("172.30.0.0/16")))
		g.Expect(other.written()).To(Equal([]string{"PATCH virt-launcher"}))
	})
	t.Run("When it is as it should be nothing should be written", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(keep(t, hc)).To(HaveValue(well))
		g.Expect(other.written()).To(BeEmpty())
	})
	t.Run("When another hosted cluster has its machines there each should have a policy", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(keep(t, elsewhere("demo-2"))).To(HaveValue(well))
		g.Expect(other.written()).To(Equal([]string{"PATCH virt-launcher-demo-2"}))
		g.Expect(keep(t, hc)).To(HaveValue(well))
		g.Expect(other.written()).To(BeEmpty())
	})
	for name, tc := range map[string]struct{ forbidden, reason, says string }{
		"its networks": {"GET /apis/config.openshift.io", "InfraClusterNetworkReadFailed", "must allow to get networks.config.openshift.io"},
		"policies":     {"PATCH /apis/networking.k8s.io", "InfraClusterNetworkPolicyCreateFailed", "must allow to get, create, patch and delete NetworkPolicies"},
	} {
		t.Run("When the kubeconfig doesn't allow "+name+" the condition should name the right", func(t *testing.T) {
			g := NewWithT(t)
			other.mu.Lock()
			other.forbidden = []string{tc.forbidden}
			other.mu.Unlock()
			defer func() {
				other.mu.Lock()
				other.forbidden = nil
				other.mu.Unlock()
			}()
			g.Expect(keep(t, elsewhere("demo-3"))).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.reason), HaveField("Message", ContainSubstring(tc.says)))))
			g.Expect(other.written()).To(BeEmpty())
		})
	}
	t.Run("When there is no kubeconfig the condition should name the Secret", func(t *testing.T) {
		g := NewWithT(t)
		empty := served()
		g.Expect(Platform{}.KeepPolicy(t.Context(), empty, hc, "clusters-demo", specOf(hc))).To(HaveValue(And(HaveField("Reason", "InfraClusterNetworkReadFailed"), HaveField("Message", ContainSubstring("Secret infra")))))
	})
	t.Run("When virtual machines are beside the control plane there should be no condition", func(t *testing.T) {
		NewWithT(t).Expect(keep(t, virtual())).To(BeNil())
	})
	t.Run("When the hosted cluster goes its policy should go, and no other", func(t *testing.T) {
		g := NewWithT(t)
		now := time.Now()
		gone := hc.DeepCopy()
		gone.DeletionTimestamp = &metav1.Time{Time: now}
		drop := func(c client.Client, at time.Time) error {
			return Platform{}.DropPolicy(t.Context(), c, gone, "clusters-demo", at)
		}
		other.mu.Lock()
		other.forbidden = []string{"DELETE"}
		other.mu.Unlock()
		g.Expect(drop(live, now)).To(MatchError(ContainSubstring("must allow to get, create, patch and delete")))
		g.Expect(drop(live, now.Add(11*time.Minute))).To(Succeed(), "a cluster that refuses is not waited for longer")
		g.Expect(drop(served(), now)).To(Succeed(), "without a kubeconfig nobody can")
		other.mu.Lock()
		other.forbidden = nil
		other.mu.Unlock()
		g.Expect(drop(live, now)).To(Succeed())
		g.Expect(other.policy(g, "virt-launcher")).To(BeNil())
		g.Expect(other.policy(g, "virt-launcher-demo-2")).NotTo(BeNil())
		other.written()
		g.Expect(drop(live, now)).To(Succeed())
		g.Expect(other.written()).To(BeEmpty())
	})
	t.Run("When the other hosted cluster is gone the policy should keep its name, and follow changes", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(other.policy(g, "virt-launcher")).To(BeNil(), "the published name is free")
		second := elsewhere("demo-2")
		g.Expect(keep(t, second)).To(HaveValue(well))
		g.Expect(other.written()).To(BeEmpty())
		other.serves(`{"status":{"clusterNetwork":[{"cidr":"10.4.0.0/14"}]}}`)
		g.Expect(keep(t, second)).To(HaveValue(well))
		g.Expect(other.written()).To(Equal([]string{"PATCH virt-launcher-demo-2"}))
	})
	t.Run("When a hosted cluster has two policies one should be left, which follows changes", func(t *testing.T) {
		g := NewWithT(t)
		second := elsewhere("demo-2")
		raw, err := json.Marshal(other.policy(g, "virt-launcher-demo-2"))
		g.Expect(err).NotTo(HaveOccurred())
		other.mu.Lock()
		other.objects["/apis/networking.k8s.io/v1/namespaces/vms/networkpolicies/virt-launcher"] = raw
		other.mu.Unlock()
		other.serves(`{"status":{"clusterNetwork":[{"cidr":"10.8.0.0/14"}]}}`)
		g.Expect(keep(t, second)).To(HaveValue(well))
		g.Expect(other.written()).To(Equal([]string{"PATCH virt-launcher", "DELETE virt-launcher-demo-2"}))
		g.Expect(other.policy(g, "virt-launcher").Spec).To(Equal(specOf(second)([]netip.Prefix{netip.MustParsePrefix("10.8.0.0/14")})))
		g.Expect(keep(t, second)).To(HaveValue(well))
		g.Expect(other.written()).To(BeEmpty())
	})
	t.Run("When neither name is free the condition should name the policy to remove", func(t *testing.T) {
		g := NewWithT(t)
		other.mu.Lock()
		other.objects["/apis/networking.k8s.io/v1/namespaces/vms/networkpolicies/virt-launcher-demo-4"] = json.RawMessage(`{"spec":{"podSelector":{}}}`)
		other.mu.Unlock()
		g.Expect(keep(t, elsewhere("demo-4"))).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("NetworkPolicy virt-launcher-demo-4 of namespace vms")))))
		g.Expect(other.written()).To(BeEmpty())
	})
}
