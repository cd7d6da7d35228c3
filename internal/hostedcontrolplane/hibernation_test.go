package hostedcontrolplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestHibernated(t *testing.T) {
	told := func(obs *Observed) {
		obs.HCP.Annotations = map[string]string{hyperv1.HibernateAnnotation: "true"}
	}
	gone := func(obs *Observed) {
		obs.Etcd = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0)}}
		obs.APIServer.Spec.Replicas, obs.APIServer.Status = ptr.To[int32](0), appsv1.DeploymentStatus{Conditions: obs.APIServer.Status.Conditions}
		obs.Deployments = []appsv1.Deployment{*obs.APIServer, *deployment("control-plane-operator", 0)}
	}
	slept := func(obs *Observed) {
		conditions.Set(&obs.HCP.Status.Conditions, noon, metav1.Condition{Type: hyperv1.HostedClusterHibernated, Status: "True", Reason: hyperv1.AsleepReason})
	}
	for name, tc := range map[string]struct {
		world []func(*Observed)
		want  string
		calm  bool
	}{
		"When nobody asks for it nothing should be said": {},
		"When others still run it should name them":      {world: []func(*Observed){told}, want: "False/FallingAsleep: still running: etcd, kube-apiserver", calm: true},
		"When nothing runs but operators it should sleep": {world: []func(*Observed){told, gone},
			want: "True/Asleep: nothing runs but the operators of the control plane; data of etcd, addresses and certificates are kept", calm: true},
		"When it is told to wake it should say what is missing": {world: []func(*Observed){slept, gone}, want: "False/Waking: the control plane is on its way up"},
		"When it serves again nothing should be said":           {world: []func(*Observed){slept}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			obs := wellObserved(append([]func(*Observed){func(o *Observed) { o.Etcd.Name = "etcd" }}, tc.world...)...)
			status := obs.HCP.Status.DeepCopy()
			report(status, obs, noon)
			got := ""
			if c := conditions.Get(status.Conditions, hyperv1.HostedClusterHibernated); c != nil {
				got = string(c.Status) + "/" + c.Reason + ": " + c.Message
			}
			g.Expect(got).To(HavePrefix(tc.want))
			g.Expect(got == "").To(Equal(tc.want == ""))
			for _, kind := range []string{hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.HostedControlPlaneAvailable} {
				if c := conditions.Get(status.Conditions, kind); c.Status == metav1.ConditionFalse {
					g.Expect(c.Reason == hyperv1.HostedClusterHibernated).To(Equal(tc.calm), "%s: %s", kind, c.Reason)
				}
			}
		})
	}
}

func TestRunningSince(t *testing.T) {
	came := noon.Add(-time.Hour)
	etcd := metav1.Condition{Type: hyperv1.EtcdAvailable, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(came)}
	sleep := metav1.Condition{Type: hyperv1.HostedClusterHibernated, Status: metav1.ConditionFalse}
	for name, tc := range map[string]struct {
		told   string
		before []metav1.Condition
		want   time.Time
	}{
		"When nothing is known it should not count":                        {},
		"When the cluster is awake it should count since etcd came":        {before: []metav1.Condition{etcd}, want: came},
		"When the cluster wakes it should count from now":                  {before: []metav1.Condition{etcd, sleep}, want: noon},
		"When the cluster has just been told to sleep it should not count": {told: "true", before: []metav1.Condition{etcd}, want: noon},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.HibernateAnnotation: tc.told}}}
			NewWithT(t).Expect(runningSince(hcp, tc.before, noon)).To(Equal(tc.want))
		})
	}
}
