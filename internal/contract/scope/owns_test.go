package scope_test

import (
	"testing"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"hcp.internal/platform/internal/contract/scope"
)

const (
	scopeKey, privateKey = hyperv1.HostedClusterScopeAnnotation, hyperv1.PrivateCAPITypesAnnotation
	lockKey, failedKey   = hyperv1.PrivateCAPIMigrationInProgressAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation
)

// The operators that can run beside each other in one management cluster.
var (
	newOperator    = scope.Identity{PrivateCAPI: true}
	legacyOperator = scope.Identity{Scope: ptr.To(hyperv1.LegacyScope)}
	otherOperator  = scope.Identity{PrivateCAPI: true, Scope: ptr.To("other")}
)

func TestOwns(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations        map[string]string
		new, legacy, other scope.Ownership
	}{
		"When it is new it should be claimed by the new operator":           {new: scope.Unclaimed},
		"When it is private it should be the new operator's":                {annotations: map[string]string{privateKey: "true"}, new: scope.Ours},
		"When it is private and failed before it should stay the new one's": {annotations: map[string]string{privateKey: "true", failedKey: "x"}, new: scope.Ours},
		"When it is from before it should be the legacy operator's":         {annotations: map[string]string{scopeKey: "legacy"}, legacy: scope.Ours},
		"When its move failed it should be the legacy operator's":           {annotations: map[string]string{scopeKey: "legacy", failedKey: "health-check-timeout"}, legacy: scope.Ours},
		"When it claims to be both nobody should touch it but to repair it": {annotations: map[string]string{scopeKey: "legacy", privateKey: "true"}, new: scope.Contradictory},
		"When it has another scope it should be left to that one":           {annotations: map[string]string{scopeKey: "other"}, other: scope.Unclaimed},
		"When it is private in another scope it should be left to that one": {annotations: map[string]string{scopeKey: "other", privateKey: "true"}, other: scope.Ours},
		"When it is being moved nobody should touch it":                     {annotations: map[string]string{lockKey: "true", scopeKey: "legacy"}},
		"When it is private and being moved nobody should touch it":         {annotations: map[string]string{lockKey: "true", privateKey: "true"}},
		"When it is both and being moved nobody should touch it":            {annotations: map[string]string{lockKey: "true", privateKey: "true", scopeKey: "legacy"}},
		"When the lock has another value it should count for nothing":       {annotations: map[string]string{lockKey: "false", privateKey: "true"}, new: scope.Ours},
		"When private has another value it should count for nothing":        {annotations: map[string]string{privateKey: "false"}, new: scope.Unclaimed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(newOperator.Owns(tc.annotations)).To(Equal(tc.new), "new operator")
			g.Expect(legacyOperator.Owns(tc.annotations)).To(Equal(tc.legacy), "legacy operator")
			g.Expect(otherOperator.Owns(tc.annotations)).To(Equal(tc.other), "operator of another scope")
		})
	}
	t.Run("When there are standard types only it should be as ever, and private ones should be left alone", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(scope.Identity{}.Owns(nil)).To(Equal(scope.Ours))
		g.Expect(scope.Identity{}.Owns(map[string]string{scopeKey: "any"})).To(Equal(scope.Ours))
		g.Expect(scope.Identity{}.Owns(map[string]string{privateKey: "true"})).To(Equal(scope.NotOurs))
		g.Expect(scope.Identity{Scope: ptr.To("")}.Owns(map[string]string{scopeKey: "any"})).To(Equal(scope.NotOurs))
	})
}

func TestOneOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		annotations := map[string]string{}
		for key, values := range map[string][]string{
			scopeKey: {"", "legacy", "other", "third"}, privateKey: {"", "true", "false"}, lockKey: {"", "true", "false"}, failedKey: {"", "x"},
		} {
			if v := rapid.SampledFrom(append(values, "absent")).Draw(t, key); v != "absent" {
				annotations[key] = v
			}
		}
		owners := 0
		for _, o := range []scope.Identity{newOperator, legacyOperator, otherOperator} {
			if o.Owns(annotations) != scope.NotOurs {
				owners++
			}
		}
		if owners > 1 || (annotations[lockKey] == "true" && owners > 0) {
			t.Fatalf("%d owners of %v", owners, annotations)
		}
	})
}

func TestAcknowledges(t *testing.T) {
	const name = hyperv1.PrivateCAPIMigrationLockAnnotation
	for title, tc := range map[string]struct {
		annotations map[string]string
		by          string
	}{
		"When a hosted cluster from before is locked its operator should acknowledge": {annotations: map[string]string{lockKey: "true", name: "l1", scopeKey: "legacy"}, by: "legacy"},
		"When a private one is locked the new operator should":                        {annotations: map[string]string{lockKey: "true", name: "l1", privateKey: "true"}, by: "new"},
		"When it is not locked nobody should":                                         {annotations: map[string]string{name: "l1", privateKey: "true"}},
		"When it says both nobody should":                                             {annotations: map[string]string{lockKey: "true", name: "l1", scopeKey: "legacy", privateKey: "true"}},
	} {
		t.Run(title, func(t *testing.T) {
			g := NewWithT(t)
			for who, o := range map[string]scope.Identity{"new": newOperator, "legacy": legacyOperator, "other": otherOperator} {
				want := ""
				if who == tc.by {
					want = "l1"
				}
				g.Expect(o.Acknowledges(tc.annotations)).To(Equal(want), who)
			}
		})
	}
}
