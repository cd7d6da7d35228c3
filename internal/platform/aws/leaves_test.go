package aws

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/support"
	"hcp.internal/platform/internal/support/supporttest"
)

// madeOf is all that this package makes of a cluster and a pool, or says against them.
func madeOf(t *testing.T, in machine.Input) string {
	t.Helper()
	var all []any
	add := func(thing any, err error) {
		all = append(all, thing)
		if err != nil {
			all = append(all, err.Error())
		}
	}
	p, hc := Platform{}, in.HostedCluster.DeepCopy()
	p.Default(hc)
	infra, err := p.InfraCR(hc, "clusters-demo", hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443})
	add(infra, err)
	if infra != nil {
		add(nil, p.CompleteInfra(infra, hc, []hyperv1.NodePool{*in.NodePool}))
	}
	secrets, err := p.Credentials(t.Context(), fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), hc, "clusters-demo")
	add(secrets, err)
	provider, err := p.CAPIProvider(hc, nil)
	add(provider, err)
	template, err := p.MachineTemplate(in)
	add(template, err)
	conditions, _ := p.PoolConditions(in)
	add(conditions, nil)
	raw, err := json.Marshal(all)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// TestEachField changes one field after the other of what the API has for AWS, starting from each of the machines of TestFields: all that this package is said to
// heed must change what is made.
func TestEachField(t *testing.T) {
	bases := map[string]machine.Input{}
	for name, change := range changes {
		in := sample()
		change(&in, in.NodePool.Spec.Platform.AWS)
		bases[name] = in
	}
	for _, kind := range []string{"NodePool", "HostedCluster"} {
		for _, leaf := range supporttest.Leaves(t, kind) {
			if !strings.HasPrefix(leaf.Path, "spec.platform.aws.") {
				continue
			}
			if e, _ := support.Of(kind).Lookup(leaf.Path, ""); e.Verdict != support.Heeded || e.By != "test internal/platform/aws.TestFields" {
				continue // another test holds it
			}
			t.Run("When "+leaf.Path+" of a "+kind+" changes something of what is made should", func(t *testing.T) {
				if !changesSomething(t, kind, leaf, bases) {
					t.Errorf("nothing changes with %s of a %s", leaf.Path, kind)
				}
			})
		}
	}
}

func changesSomething(t *testing.T, kind string, leaf supporttest.Leaf, bases map[string]machine.Input) bool {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(bases)) {
		before := madeOf(t, bases[name])
		for _, value := range supporttest.Candidates(leaf) {
			in := bases[name]
			in.HostedCluster, in.NodePool = in.HostedCluster.DeepCopy(), in.NodePool.DeepCopy()
			if kind == "NodePool" && !with(&in.NodePool.Spec, leaf.Path, value) || kind == "HostedCluster" && !with(&in.HostedCluster.Spec, leaf.Path, value) {
				continue
			}
			if madeOf(t, in) != before {
				return true
			}
		}
	}
	return false
}

// with sets a field of a spec; false: the value is none for it.
func with[S any](spec *S, path string, value any) bool {
	raw, err := json.Marshal(spec)
	if err != nil {
		return false
	}
	var content map[string]any
	if json.Unmarshal(raw, &content) != nil {
		return false
	}
	supporttest.Set(content, path, value)
	if raw, err = json.Marshal(content); err != nil {
		return false
	}
	var changed S
	if json.Unmarshal(raw, &changed) != nil {
		return false
	}
	*spec = changed
	return true
}
