package capi

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/migration"
)

func TestMigrateStatus(t *testing.T) {
	const private, scope, lock = hyperv1.PrivateCAPITypesAnnotation, hyperv1.HostedClusterScopeAnnotation, hyperv1.PrivateCAPIMigrationInProgressAnnotation
	for name, tc := range map[string]struct {
		annotations map[string]string
		reason      string // of condition PrivateCAPIMigrationProgressing
		want        string // types, state, phase
	}{
		"When nobody asked it should say so":                    {annotations: map[string]string{scope: "legacy"}, want: "Standard NotAsked "},
		"When it is asked for it should say so":                 {annotations: map[string]string{scope: "legacy", hyperv1.PrivateCAPIMigrateAnnotation: "true"}, want: "Standard Asked "},
		"When something speaks against it it should be held":    {annotations: map[string]string{scope: "legacy", hyperv1.PrivateCAPIMigrateAnnotation: "true"}, reason: hyperv1.MigrationHeldReason, want: "Standard Held "},
		"When it is being moved it should say how far":          {annotations: map[string]string{scope: "legacy", lock: "true", hyperv1.PrivateCAPIMigrationLockAnnotation: "a"}, reason: "Copy", want: "Standard Moving Copy"},
		"When somebody set the lock by hand it should say so":   {annotations: map[string]string{scope: "legacy", lock: "true"}, reason: hyperv1.MigrationHeldReason, want: "Standard LockedByHand "},
		"When it was taken back it should say so":               {annotations: map[string]string{scope: "legacy", hyperv1.PrivateCAPIMigrationFailedAnnotation: "internal"}, reason: hyperv1.MigrationRolledBackReason, want: "Standard RolledBack "},
		"When it was moved it should say so":                    {annotations: map[string]string{private: "true"}, reason: hyperv1.MigrationCompletedReason, want: "Private Moved "},
		"When it has always been private nothing is to be done": {annotations: map[string]string{private: "true"}, want: "Private NotAsked "},
		"When another operator looks after it it should say so": {annotations: map[string]string{scope: "other"}, want: "Standard Foreign "},
		"When it is asked back it should say so":                {annotations: map[string]string{private: "true", hyperv1.PrivateCAPIRollbackAnnotation: "true"}, reason: hyperv1.MigrationCompletedReason, want: "Private Asked "},
	} {
		t.Run(name, func(t *testing.T) {
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: tc.annotations}}
			if tc.reason != "" {
				hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.PrivateCAPIMigrationProgressing, Reason: tc.reason, Message: "why"}}
			}
			s := statusOf(hc)
			NewWithT(t).Expect(strings.Join([]string{s.Types, s.State, s.Phase}, " ")).To(Equal(tc.want))
		})
	}
}

func TestPrintReports(t *testing.T) {
	t.Run("When something speaks against a move it should be printed with what helps", func(t *testing.T) {
		g := NewWithT(t)
		out := &strings.Builder{}
		printReports(out, []migration.Report{{HostedCluster: "clusters/demo", Objects: 9, Machines: 2, Dependents: 3,
			Refusals: []migration.Refusal{{Reason: "Paused", Message: "spec.pausedUntil pauses the hosted cluster", Remedy: "end the pause"}}}})
		g.Expect(out.String()).To(Equal("clusters/demo: 9 objects of 2 machines, 3 objects that get new owners\n  Paused: spec.pausedUntil pauses the hosted cluster\n    end the pause\n"))
		out.Reset()
		printReports(out, nil)
		g.Expect(out.String()).To(Equal("there is nothing to move\n"))
	})
}
