package capi

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	. "github.com/onsi/gomega"
)

const (
	scopeKey, privateKey = hyperv1.HostedClusterScopeAnnotation, hyperv1.PrivateCAPITypesAnnotation
	lockKey, failedKey   = hyperv1.PrivateCAPIMigrationInProgressAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation
)

func TestClaim(t *testing.T) {
	hcp := func(annotations map[string]string) *hyperv1.HostedControlPlane {
		out := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}
		for k, v := range annotations {
			out.Annotations[k] = v
		}
		return out
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		hcp         *hyperv1.HostedControlPlane
		noMachines  bool
		standard    bool
		want        map[string]any
	}{
		"When nothing has been made for it it should become private":                           {want: map[string]any{}},
		"When its control plane is from before it should be marked":                            {hcp: hcp(nil), want: map[string]any{scopeKey: "legacy"}},
		"When somebody took its annotation off it should become private":                       {hcp: hcp(map[string]string{privateKey: "true"}), want: map[string]any{}},
		"When it has no machines there is nothing to move":                                     {hcp: hcp(nil), noMachines: true, want: map[string]any{}},
		"When its control plane is gone and its Cluster isn't it should be marked":             {standard: true, want: map[string]any{scopeKey: "legacy"}},
		"When machines were disabled since and its Cluster is still there it should be marked": {hcp: hcp(nil), noMachines: true, standard: true, want: map[string]any{scopeKey: "legacy"}},
		"When its control plane is private a Cluster that was left behind doesn't change that": {hcp: hcp(map[string]string{privateKey: "true"}), standard: true, want: map[string]any{}},
		"When the control plane is another hosted cluster's it says nothing":                   {hcp: hcp(map[string]string{hyperv1.HostedClusterAnnotation: "a/b"}), want: map[string]any{}},
		"When it is said to be both and is private the scope should go":                        {annotations: map[string]string{privateKey: "true", scopeKey: "legacy"}, hcp: hcp(map[string]string{privateKey: "true"}), want: map[string]any{scopeKey: nil, privateKey: "true"}},
		"When it is said to be both and is from before private should go":                      {annotations: map[string]string{privateKey: "true", scopeKey: "legacy"}, hcp: hcp(nil), want: map[string]any{privateKey: nil}},
		"When it is said to be both and nothing is there it should be private":                 {annotations: map[string]string{privateKey: "true", scopeKey: "legacy"}, want: map[string]any{scopeKey: nil, privateKey: "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: tc.annotations}}
			NewWithT(t).Expect(claim(hc, tc.hcp, evidence{machines: !tc.noMachines, standard: tc.standard})).To(Equal(tc.want))
		})
	}
}

func TestStorageCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"When it is private":                {map[string]string{privateKey: "true"}, "True/PrivateTypesInUse"},
		"When it is from before":            {map[string]string{scopeKey: "legacy"}, "False/AwaitingMigration"},
		"When its move was taken back":      {map[string]string{scopeKey: "legacy", failedKey: "x"}, "False/MigrationFailed"},
		"When it is being moved":            {map[string]string{scopeKey: "legacy", lockKey: "true"}, "Unknown/Migrating"},
		"When it is looked after by others": {map[string]string{scopeKey: "other"}, "False/ForeignScope"},
	} {
		t.Run(name+" it should say "+tc.want, func(t *testing.T) {
			c := StorageCondition(&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			g := NewWithT(t)
			g.Expect(fmt.Sprintf("%s/%s", c.Status, c.Reason)).To(Equal(tc.want))
			g.Expect(c.Message).NotTo(BeEmpty())
		})
	}
}
