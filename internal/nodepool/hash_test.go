package nodepool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// hashesOf are what a pass names what machines are to be.
func hashesOf(t *testing.T, mutate ...func(*observed)) (hash, former string) {
	t.Helper()
	obs := example(t, mutate...)
	in, err := inputsOf(obs, "")
	if err != nil {
		t.Fatal(err)
	}
	old, err := formerInputs(obs, in)
	if err != nil {
		t.Fatal(err)
	}
	return in.Hash(), old.Hash()
}

// notHashed are fields that machines read and that can't change, or that change running machines without replacing them.
var notHashed = []string{"spec.networking.machineNetwork"}

// TestHashIsWhatMachinesRead changes every field of a HostedCluster. Another hash replaces machines, so a field may have a part in it only if
// machines read it, and must if they do.
func TestHashIsWhatMachinesRead(t *testing.T) {
	base := example(t)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&base.hc.Spec)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := hashesOf(t)
	table := support.Of("HostedCluster")
	for _, leaf := range supporttest.Leaves(t, table.Kind) {
		changes := false
		for _, value := range supporttest.Candidates(leaf) {
			next := runtime.DeepCopyJSON(toJSON(t, spec))
			supporttest.Set(next, leaf.Path, value)
			raw, err := json.Marshal(next)
			if err != nil {
				t.Fatal(err)
			}
			decoded := hyperv1.HostedClusterSpec{}
			if json.Unmarshal(raw, &decoded) != nil {
				continue
			}
			hash, _ := hashesOf(t, func(o *observed) { o.hc.Spec = decoded })
			changes = changes || hash != before
		}
		e, _ := table.Lookup(leaf.Path, "")
		machinesRead := strings.Contains(e.By, "ignition") || leaf.Path == "spec.configuration.proxy.trustedCA.name"
		switch {
		case changes && e.Verdict != support.Heeded:
			t.Errorf("%s has a part in the hash, so that changing it replaces machines, and nobody heeds it", leaf.Path)
		case !changes && machinesRead && !strings.HasPrefix(leaf.Path, notHashed[0]):
			t.Errorf("%s is read by machines, and changing it replaces none", leaf.Path)
		}
	}
}

func toJSON(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// unread are settings that older operators hashed and machines never read.
func unread(o *observed) {
	o.hc.Spec.Configuration = &hyperv1.ClusterConfiguration{
		Image:     &configv1.ImageSpec{ExternalRegistryHostnames: []string{"registry.example.com"}},
		APIServer: &configv1.APIServerSpec{TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}},
	}
	o.pool.Spec.OSImageStream.Name = "rhel-10"
}

func TestHashesOfOlderOperators(t *testing.T) {
	now, former := hashesOf(t, unread)
	NewWithT(t).Expect(former).NotTo(Equal(now))
	// byOlder is a pool that an older operator brought to its end.
	byOlder := func(t *testing.T) *observed {
		obs := example(t, unread)
		in, _ := inputsOf(obs, "")
		old, _ := formerInputs(obs, in)
		metav1.SetMetaDataAnnotation(&obs.pool.ObjectMeta, hyperv1.NodePoolCurrentConfigVersionAnnotation, old.Hash())
		metav1.SetMetaDataAnnotation(&obs.pool.ObjectMeta, hyperv1.NodePoolCurrentConfigAnnotation, old.ConfigHash())
		return settled(obs, planFor(obs, noon, "00000000-0000-4000-8000-000000000000"))
	}
	userData := func(obs *observed) string {
		return fmt.Sprint(*obs.deployment.Spec.Template.Spec.Bootstrap.DataSecretName)
	}
	t.Run("When the operator is upgraded it should replace no machine", func(t *testing.T) {
		g := NewWithT(t)
		obs := byOlder(t)
		g.Expect(userData(obs)).To(HaveSuffix(former))
		p := planFor(obs, noon, "unused")
		g.Expect(userData(settled(obs, p))).To(Equal(userData(obs)))
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("False"))
		g.Expect(obs.pool.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolConfigAliasAnnotation, ContainSubstring(now+"="+former)))
	})
	t.Run("When what machines don't read changes afterwards it should replace no machine", func(t *testing.T) {
		g := NewWithT(t)
		obs := byOlder(t)
		next := *obs
		next.hc = obs.hc.DeepCopy()
		next.hc.Spec.Configuration.Image.ExternalRegistryHostnames = []string{"other.example.com"}
		next.pool = obs.pool.DeepCopy()
		next.pool.Spec.OSImageStream.Name = "rhel-9"
		g.Expect(userData(settled(&next, planFor(&next, noon, "unused")))).To(Equal(userData(obs)))
	})
	t.Run("When what machines read changes it should replace them", func(t *testing.T) {
		g := NewWithT(t)
		obs := byOlder(t)
		next := *obs
		next.hc = obs.hc.DeepCopy()
		next.hc.Spec.Configuration.Proxy = &configv1.ProxySpec{HTTPProxy: "http://proxy.example.com"}
		p := planFor(&next, noon, "unused")
		g.Expect(p.createToken).NotTo(BeNil())
		g.Expect(p.createToken.Name).NotTo(HaveSuffix(former))
	})
	t.Run("When a pool is new it should have a hash of what machines read alone", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(example(t, unread), noon, "x")
		g.Expect(p.createToken.Name).To(HaveSuffix(now))
		g.Expect(p.annotations).NotTo(HaveKey(hyperv1.NodePoolConfigAliasAnnotation))
	})
	t.Run("When an operator is upgraded in the middle of a rollout it should go on with the same machines", func(t *testing.T) {
		g := NewWithT(t)
		obs := byOlder(t)
		delete(obs.pool.Annotations, hyperv1.NodePoolCurrentConfigVersionAnnotation)
		delete(obs.pool.Annotations, hyperv1.NodePoolConfigAliasAnnotation)
		g.Expect(userData(settled(obs, planFor(obs, noon, "unused")))).To(Equal(userData(obs)))
	})
}
