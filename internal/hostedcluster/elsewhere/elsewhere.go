package elsewhere

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/memory"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/platform"
)

// How often the policy of machines in another cluster is looked at, when it was as it should be and when it was not.
const (
	elsewhereGood = 5 * time.Minute
	elsewhereBad  = 30 * time.Second
)

// elsewhere is what became of the policy of a hosted cluster's machines in another cluster. The other cluster may be far away, so not every pass asks it.
type elsewhere struct {
	at        time.Time
	digest    string
	condition *metav1.Condition
}

// left is how long what is known holds; 0: it has to be looked at. It is pure.
func (e elsewhere) left(now time.Time, digest string) time.Duration {
	holds := elsewhereGood
	if e.condition != nil && e.condition.Status != metav1.ConditionTrue {
		holds = elsewhereBad
	}
	if e.digest != digest {
		return 0
	}
	return max(0, holds-now.Sub(e.at))
}

// Policies is what is known of each hosted cluster. The zero value knows nothing.
type Policies struct {
	known memory.Of[elsewhere]
}

// Forget drops what is known of a hosted cluster that is gone.
func (m *Policies) Forget(key types.NamespacedName) { m.known.Forget(key) }

// Keep has the platform bound machines that are pods of another cluster, notes for the conditions what became of it, and tells when to look
// again; 0: there is nothing to look at.
func (m *Policies) Keep(ctx context.Context, live client.Reader, obs *state.Observed, now time.Time) time.Duration {
	hc := obs.HC
	keeper, ok := obs.Platform.(platform.PolicyKeeper)
	if !ok || obs.HCP == nil || obs.Target == nil || hc.Spec.Platform.Kubevirt == nil || hc.Spec.Platform.Kubevirt.Credentials == nil || pause.At(hc.Spec.PausedUntil, now).Active {
		return 0
	}
	in := desired.PolicyInput(obs)
	in.VirtualMachines = hc.Spec.InfraID
	spec := func(networks []netip.Prefix) networkingv1.NetworkPolicySpec {
		in.Management = netpolicy.Management{Networks: networks}
		return netpolicy.MachinesElsewhere(in)
	}
	key := client.ObjectKeyFromObject(hc)
	digest := digestOf(spec(nil), hc.Spec.Platform.Kubevirt.Credentials)
	known, _ := m.known.Get(key)
	left := known.left(now, digest)
	if left == 0 {
		known = elsewhere{at: now, digest: digest, condition: keeper.KeepPolicy(ctx, live, hc, names.NamespaceOf(hc), spec)}
		m.known.Put(key, known)
		left = known.left(now, digest)
	}
	obs.Elsewhere = known.condition
	return left
}

func digestOf(parts ...any) string {
	raw, _ := json.Marshal(parts) // of types that can be encoded
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
