package hostedcluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestTroubles(t *testing.T) {
	inHCP := func(conds ...metav1.Condition) func(*state.Observed) {
		return func(obs *state.Observed) {
			obs.HCP = desired.HostedControlPlane(obs)
			obs.HCP.Status.Conditions = conds
			obs.HCP.Status.VersionStatus = &hyperv1.ClusterVersionStatus{}
			obs.HCP.Status.VersionStatus.Desired.Image = statetest.Image135
		}
	}
	operator := func(obs *state.Observed) {
		obs.Troubles = []trouble.Trouble{{Component: names.ControlPlaneOperator, Reason: trouble.ImagePullBackOff, Message: "pod x can't get image"}}
	}
	const told = "Unschedulable pod etcd-0 fits on no node"
	for name, tc := range map[string]struct {
		world                  []func(*state.Observed)
		available, progressing string
	}{
		"When the control plane tells of a pod without a place it should be passed on": {
			world: []func(*state.Observed){inHCP(
				metav1.Condition{Type: hyperv1.HostedControlPlaneAvailable, Status: metav1.ConditionFalse, Reason: trouble.Unschedulable, Message: "pod etcd-0 fits on no node"},
				metav1.Condition{Type: hyperv1.ClusterVersionProgressing, Status: metav1.ConditionTrue, Reason: trouble.Unschedulable, Message: "pod etcd-0 fits on no node"})},
			available: "False " + told, progressing: "True " + told,
		},
		"When the control-plane-operator itself does not run that should be the reason": {
			world:     []func(*state.Observed){inHCP(), operator},
			available: "False ImagePullBackOff pod x can't get image", progressing: "True ImagePullBackOff pod x can't get image",
		},
		"When the API serves all the same it should be available": {
			world:     []func(*state.Observed){inHCP(metav1.Condition{Type: hyperv1.HostedControlPlaneAvailable, Status: metav1.ConditionTrue}), operator},
			available: "True AsExpected " + status.MessageAvailable, progressing: "True ImagePullBackOff pod x can't get image",
		},
		"When it waits for room both should say so": {
			world: []func(*state.Observed){func(obs *state.Observed) {
				obs.Admission = &admission.Decision{Waits: true, Reason: hyperv1.WaitingForCapacityReason, Message: "no room"}
			}},
			available: "False WaitingForCapacity no room", progressing: "False WaitingForCapacity no room",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := statetest.Seen(tc.world...)
			status.Set(obs, statetest.Noon)
			for kind, want := range map[string]string{hyperv1.HostedClusterAvailable: tc.available, hyperv1.HostedClusterProgressing: tc.progressing} {
				c := conditions.Get(obs.HC.Status.Conditions, kind)
				g.Expect(string(c.Status)+" "+c.Reason+" "+c.Message).To(Equal(want), kind)
			}
		})
	}
	t.Run("When something lacks replicas it should look again, as why shows in a pod that nobody watches", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(inHCP(metav1.Condition{Type: hyperv1.HostedControlPlaneAvailable, Status: metav1.ConditionTrue}))
		g.Expect(planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).recheckAfter).To(BeZero())
		obs.Lacking = true
		g.Expect(planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).recheckAfter).To(Equal(troubleRecheck))
	})
	t.Run("When it waits for room nothing should be made", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.Admission = &admission.Decision{Waits: true, Reason: hyperv1.WaitingForCapacityReason}
		})
		status.Set(obs, statetest.Noon)
		for _, s := range planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{}).steps {
			g.Expect(s.Create == nil && len(s.Apply) == 0).To(BeTrue(), s.Name)
		}
	})
}

func TestLastProgress(t *testing.T) {
	at := func(reason string) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, LastUpdateTime: metav1.NewTime(statetest.Noon)},
			{Type: appsv1.DeploymentProgressing, Reason: reason, LastUpdateTime: metav1.NewTime(statetest.Noon.Add(-20 * time.Minute))},
		}}
	}
	for name, tc := range map[string]struct {
		status appsv1.DeploymentStatus
		want   time.Time
	}{
		"When it was changed and nobody has acted on that it should be now":             {status: appsv1.DeploymentStatus{ObservedGeneration: 1}, want: statetest.Noon},
		"When pods were made twenty minutes ago it should be then":                      {status: at("NewReplicaSetCreated"), want: statetest.Noon.Add(-20 * time.Minute)},
		"When it was given up twenty minutes ago it should be the deadline before that": {status: at("ProgressDeadlineExceeded"), want: statetest.Noon.Add(-30 * time.Minute)},
		"When it says nothing it should not be known":                                   {status: appsv1.DeploymentStatus{ObservedGeneration: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.status}
			NewWithT(t).Expect(lastProgress(d, statetest.Noon)).To(Equal(tc.want))
		})
	}
}
