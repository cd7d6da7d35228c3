package hostedcluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/platform"
)

// TestModelCollisions draws pairs of HostedClusters whose names are alike. What is made for one is never an object of the other, unless both have the same
// control-plane namespace, which validation refuses, or both publish a Secret of the same name, which publish refuses by looking at its owner.
func TestModelCollisions(t *testing.T) {
	t.Run("When two HostedClusters have similar names nothing that is made for one should be the other's", func(t *testing.T) {
		scheme, err := NewScheme()
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			a, b := drawNamed(t, "first"), drawNamed(t, "second")
			if names.NamespaceOf(a.HC) == names.NamespaceOf(b.HC) {
				t.Skip("refused: TestCollision")
			}
			first, second := objectsOf(t, scheme, a), objectsOf(t, scheme, b)
			if len(first) == 0 || len(second) == 0 {
				t.Skip("refused: the names are too long together")
			}
			if len(first) < 10 || len(second) < 10 {
				t.Fatalf("nearly nothing is made: %d and %d objects", len(first), len(second))
			}
			for id := range first {
				if second[id] && !published(a.HC, id) {
					t.Fatalf("%s is made for both %s and %s", id, names.BackReference(a.HC), names.BackReference(b.HC))
				}
			}
		})
	})
}

// published tells whether an object is a Secret that is put beside a HostedCluster.
func published(hc *hyperv1.HostedCluster, id string) bool {
	return strings.HasPrefix(id, "Secret "+hc.Namespace+"/")
}

// drawNamed is the world of a new HostedCluster whose name and namespace are made of few syllables, some of which our own names have.
func drawNamed(t *rapid.T, label string) *state.Observed {
	kind := rapid.SampledFrom([]hyperv1.PlatformType{hyperv1.NonePlatform, hyperv1.LocalPlatform}).Draw(t, label+" platform")
	return statetest.Seen(func(obs *state.Observed) {
		obs.HC.Namespace, obs.HC.Name = rapid.SampledFrom([]string{"a", "a-b", "b"}).Draw(t, label+" namespace"), drawName(t, label)
		obs.HC.Spec.Platform.Type = kind
		obs.Platform, _ = platform.For(kind)
		obs.HCP = &hyperv1.HostedControlPlane{}
		obs.HC.Spec.KubeAPIServerDNSName, obs.OperatorLabels[state.LabelCustomKubeconfig] = "api.example.com", "true"
		obs.Published = state.PublishedSecrets{Kubeconfig: []byte("admin"), Custom: []byte("custom"), Existing: map[string]bool{}, Foreign: map[string]bool{}}
	})
}

// drawName joins a few syllables, by dashes and dots.
func drawName(t *rapid.T, label string) string {
	syllable := rapid.SampledFrom([]string{"a", "b", "admin", "custom", "kubeconfig"})
	name := syllable.Draw(t, label+" name")
	for range rapid.IntRange(0, 3).Draw(t, label+" length") {
		name += rapid.SampledFrom([]string{"-", "."}).Draw(t, label+" separator") + syllable.Draw(t, label+" name")
	}
	return name
}

// objectsOf are the objects of a plan, as "Kind namespace/name". What belongs to all hosted clusters together is not among them.
func objectsOf(t *rapid.T, scheme *runtime.Scheme, obs *state.Observed) map[string]bool {
	out := map[string]bool{}
	for _, s := range planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).steps {
		objects := s.Apply
		if s.Create != nil {
			objects = append(objects, s.Create)
		}
		for _, obj := range objects {
			gvk, err := apiutil.GVKForObject(obj, scheme)
			if err != nil {
				t.Fatal(err)
			}
			out[gvk.Kind+" "+client.ObjectKeyFromObject(obj).String()] = true
		}
	}
	return out
}
