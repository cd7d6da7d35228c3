package capi

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/hostedcluster/migration"
)

func TestMigrateStatus(t *testing.T) {
	const private, scope, lock = hyperv1.PrivateCAPITypesAnnotation, hyperv1.HostedClusterScopeAnnotation, hyperv1.PrivateCAPIMigrationInProgressAnnotation
	const asked, back, failed, hold = hyperv1.PrivateCAPIMigrateAnnotation, hyperv1.PrivateCAPIRollbackAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation, hyperv1.PrivateCAPIHoldAnnotation
	automatic, paused := map[string]string{migration.ModeAnnotation: migration.ModeAutomatic}, map[string]string{migration.PausedAnnotation: "true"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		state       map[string]string // annotations of ConfigMap private-capi-state
		others      []hyperv1.HostedCluster
		reason      string // of condition PrivateCAPIMigrationProgressing
		message     string
		want        string // types, state, phase
		watch       int    // exit code of --watch; -1: it goes on
	}{
		"When nobody asked it should say so":                     {annotations: map[string]string{scope: "legacy"}, want: "Standard NotAsked "},
		"When it is asked for it should say so":                  {annotations: map[string]string{scope: "legacy", asked: "true"}, want: "Standard Asked ", watch: -1},
		"When something speaks against it it should be held":     {annotations: map[string]string{scope: "legacy", asked: "true"}, reason: hyperv1.MigrationHeldReason, message: "can't be moved: Paused", want: "Standard Held ", watch: 2},
		"When it waits for others it should be queued":           {annotations: map[string]string{scope: "legacy", asked: "true"}, reason: hyperv1.MigrationHeldReason, message: "1 of at most 1 hosted clusters are being moved", want: "Standard Queued ", watch: -1},
		"When all are to be moved it should be queued":           {annotations: map[string]string{scope: "legacy"}, state: automatic, want: "Standard Queued ", watch: -1},
		"When all are to be moved but this one it should not be": {annotations: map[string]string{scope: "legacy", hold: "true"}, state: automatic, want: "Standard NotAsked "},
		"When moves are paused it should be held":                {annotations: map[string]string{scope: "legacy", asked: "true"}, state: paused, want: "Standard Held ", watch: 2},
		"When the pause was ended it should be queued":           {annotations: map[string]string{scope: "legacy", asked: "true"}, reason: hyperv1.MigrationHeldReason, message: "annotation pauses all moves", want: "Standard Queued ", watch: -1},
		"When moves are paused one that is under way goes on":    {annotations: map[string]string{scope: "legacy", lock: "true", hyperv1.PrivateCAPIMigrationLockAnnotation: "a"}, state: paused, reason: "Copy", want: "Standard Moving Copy", watch: -1},
		"When settings can't be read it should be held":          {annotations: map[string]string{scope: "legacy", asked: "true"}, state: map[string]string{migration.LimitAnnotation: "x"}, want: "Standard Held ", watch: 2},
		"When another one failed it should be held":              {annotations: map[string]string{scope: "legacy"}, state: automatic, others: []hyperv1.HostedCluster{other(failed, "internal")}, want: "Standard Held ", watch: 2},
		"When another one failed one that is asked for goes on":  {annotations: map[string]string{scope: "legacy", asked: "true"}, others: []hyperv1.HostedCluster{other(failed, "internal")}, want: "Standard Asked ", watch: -1},
		"When another one was asked back it should be queued":    {annotations: map[string]string{scope: "legacy"}, state: automatic, others: []hyperv1.HostedCluster{other(failed, string(migration.ReasonRequested))}, want: "Standard Queued ", watch: -1},
		"When it is being moved it should say how far":           {annotations: map[string]string{scope: "legacy", lock: "true", hyperv1.PrivateCAPIMigrationLockAnnotation: "a"}, reason: "Copy", want: "Standard Moving Copy", watch: -1},
		"When somebody set the lock by hand it should say so":    {annotations: map[string]string{scope: "legacy", lock: "true"}, reason: hyperv1.MigrationHeldReason, want: "Standard LockedByHand "},
		"When it was taken back it should say so":                {annotations: map[string]string{scope: "legacy", failed: "internal"}, reason: hyperv1.MigrationRolledBackReason, want: "Standard RolledBack ", watch: 2},
		"When it was taken back all are not to move it again":    {annotations: map[string]string{scope: "legacy", failed: "internal", asked: "true"}, state: automatic, want: "Standard RolledBack ", watch: 2},
		"When somebody had it taken back that should be all":     {annotations: map[string]string{scope: "legacy", failed: string(migration.ReasonRequested)}, state: automatic, reason: hyperv1.MigrationCompletedReason, want: "Standard RolledBack "},
		"When it was moved it should say so":                     {annotations: map[string]string{private: "true"}, state: automatic, reason: hyperv1.MigrationCompletedReason, want: "Private Moved "},
		"When it has always been private nothing is to be done":  {annotations: map[string]string{private: "true"}, want: "Private NotAsked "},
		"When another operator looks after it it should say so":  {annotations: map[string]string{scope: "other"}, state: automatic, want: "Standard Foreign "},
		"When it is asked back it should say so":                 {annotations: map[string]string{private: "true", back: "true"}, reason: hyperv1.MigrationCompletedReason, want: "Private Asked ", watch: -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: tc.annotations}}
			if tc.reason != "" {
				hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.PrivateCAPIMigrationProgressing, Reason: tc.reason, Message: tc.message}}
			}
			s := statusOf(hc, fleetOf(tc.state, append(tc.others, *hc)))
			g.Expect(strings.Join([]string{s.Types, s.State, s.Phase}, " ")).To(Equal(tc.want))
			over, err := ended([]Status{s}, heldLooks)
			g.Expect([]any{over, exit.Code(err)}).To(Equal([]any{tc.watch == 0, max(tc.watch, 0)}))
		})
	}
	t.Run("When an objection was said before somebody looked it should be waited until the operator has looked again", func(t *testing.T) {
		g := NewWithT(t)
		list := []Status{{HostedCluster: "clusters/demo", State: stateHeld, Message: migration.Refused + "Paused"}}
		over, err := ended(list, heldLooks-1)
		g.Expect(over).To(BeFalse())
		g.Expect(err).NotTo(HaveOccurred())
		_, err = ended(list, heldLooks)
		g.Expect(err).To(MatchError(ContainSubstring("clusters/demo (Held)")))
	})
	t.Run("When some moves are stopped and others go on it should wait for those", func(t *testing.T) {
		over, err := ended([]Status{{State: stateHeld}, {State: stateQueued}}, heldLooks)
		NewWithT(t).Expect([]any{over, err}).To(Equal([]any{false, nil}))
	})
}

// other is another hosted cluster with an annotation.
func other(key, value string) hyperv1.HostedCluster {
	return hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "other", Annotations: map[string]string{key: value}}}
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
