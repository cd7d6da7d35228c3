package install

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxReplicas bounds Options.Replicas: one works, the others wait.
const maxReplicas = 5

// standbyLease is how long the lease of an operator with standbys lasts. A leader that is killed is replaced when it has run out: in less than 20 s
// together with the standby's next look and the start of its controllers. In turn an API server that is away for 8 s makes the leader give up, and one
// of the Pods begin anew once it is back, which costs some seconds; hosted clusters go on meanwhile.
const standbyLease = "12s"

// leaseEnv makes operators with standbys hold short leases.
func leaseEnv(o Options) []corev1.EnvVar {
	if *replicas(o) < 2 {
		return nil
	}
	return []corev1.EnvVar{{Name: "LEASE_DURATION", Value: standbyLease}}
}

// spread keeps an operator's Pods apart where there is room for that; one node is better than none.
func spread(o Options, labels map[string]string) []corev1.TopologySpreadConstraint {
	if *replicas(o) < 2 {
		return nil
	}
	var out []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		out = append(out, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			MatchLabelKeys: []string{"pod-template-hash"}, // Pods of before a rollout don't count
		})
	}
	return out
}

// disruptionBudgets let nodes be drained one operator Pod at a time. An operator with one Pod has none: it would only stop the drain.
func disruptionBudgets(o Options) []client.Object {
	if *replicas(o) < 2 {
		return nil
	}
	budget := func(namespace, name string, labels map[string]string) client.Object {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
			},
		}
	}
	objs := []client.Object{budget(o.Namespace, operatorName, operatorLabels())}
	if o.PackageOperator {
		objs = append(objs, budget(PackageOperatorNamespace, packageManagerName, packageOperatorLabels()))
	}
	return objs
}
