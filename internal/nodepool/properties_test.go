package nodepool

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/release"
)

// TestProperties checks what must hold whatever there is.
func TestProperties(t *testing.T) {
	hashes := rapid.SampledFrom([]string{"aaaaaaaa", "bbbbbbbb", "cccccccc"})
	rapid.Check(t, func(rt *rapid.T) {
		obs := configured(example(t), rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "config"))
		goal := planFor(obs, noon, "x").createToken.Name
		targetHash, _ := token.HashOf("workers", goal)
		pick := func(label string) string {
			return rapid.OneOf(hashes, rapid.Just(targetHash)).Draw(rt, label)
		}
		templateOf := func(hash string) clusterv1.MachineTemplateSpec {
			return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{Version: "1.35.0", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(token.UserDataName("workers", hash))},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: "workers-" + hash}}}
		}
		for range rapid.IntRange(0, 4).Draw(rt, "secrets") {
			hash, data := pick("secret"), map[string][]byte{token.TokenKey: []byte("t")}
			if reason := rapid.SampledFrom([]string{"", hyperv1.AsExpectedReason, "InvalidConfig"}).Draw(rt, "reason"); reason != "" {
				data[token.ReasonKey] = []byte(reason)
			}
			created := metav1.NewTime(noon.Add(-time.Duration(rapid.IntRange(0, 60).Draw(rt, "age")) * time.Second))
			if slices.ContainsFunc(obs.secrets, func(s corev1.Secret) bool { return s.Name == token.Name("workers", hash) }) {
				continue
			}
			obs.secrets = append(obs.secrets, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: token.Name("workers", hash), CreationTimestamp: created, Annotations: map[string]string{hyperv1.TokenSecretAnnotation: "true"}}, Data: data},
				corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: token.UserDataName("workers", hash)}})
		}
		for range rapid.IntRange(0, 3).Draw(rt, "sets") {
			obs.sets = append(obs.sets, clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Template: templateOf(pick("set"))}})
		}
		if rapid.Bool().Draw(rt, "exists") {
			obs.deployment = &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Template: templateOf(pick("live"))}}
			obs.deployment.Spec.Replicas = ptr.To(rapid.Int32Range(0, 9).Draw(rt, "replicas"))
		}
		if rapid.Bool().Draw(rt, "autoscaled") {
			obs.pool.Spec.Replicas, obs.pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](2), Max: 5}
		}
		checkPlan(rt, obs, planFor(obs, noon, "new"), targetHash)
	})
}

func checkPlan(rt *rapid.T, obs *observed, p plan, targetHash string) {
	live := map[string]bool{targetHash: true}
	for _, s := range obs.sets {
		hash, _ := token.HashOf("workers", *s.Spec.Template.Spec.Bootstrap.DataSecretName)
		live[hash] = true
	}
	md := p.workload.(*clusterv1.MachineDeployment)
	now := machines.GenerationOf(&md.Spec.Template)
	if obs.deployment != nil {
		have := machines.GenerationOf(&obs.deployment.Spec.Template)
		hash, _ := token.HashOf("workers", have.UserData)
		live[hash] = true
		if now != have && now.UserData != token.UserDataName("workers", targetHash) {
			rt.Fatalf("machines are made from %v, which is neither what they were (%v) nor the target", now, have)
		}
		if now.UserData == have.UserData && now.UserData != token.UserDataName("workers", targetHash) && now != have {
			rt.Fatalf("half of a generation: %v of %v", now, have)
		}
	}
	for _, obj := range p.delete {
		if hash, ok := token.HashOf("workers", obj.GetName()); ok && live[hash] {
			rt.Fatalf("deletes %s, which machines can still be made from", obj.GetName())
		}
	}
	for _, s := range p.patches {
		hash, _ := token.HashOf("workers", s.name)
		if at := s.annotations[hyperv1.TokenSecretExpirationTimestampAnnotation]; at != nil && live[hash] {
			rt.Fatalf("ends token %s, which machines can still be made from", s.name)
		}
	}
	if n := *md.Spec.Replicas; obs.pool.Spec.AutoScaling != nil && (n < 2 || n > 5) {
		rt.Fatalf("%d replicas are outside of 2 to 5", n)
	}
	if _, err := release.ParseVersion(md.Spec.Template.Spec.Version); err != nil {
		rt.Fatal(err)
	}
}
