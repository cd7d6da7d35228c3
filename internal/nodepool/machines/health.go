package machines

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// When a machine counts as unhealthy. Machines that boot slowly, such as bare metal, get twice the time.
const (
	unhealthyAfter     = 8 * time.Minute
	unhealthyAfterSlow = 16 * time.Minute
	startupTimeout     = 20 * time.Minute
)

// maxUnhealthy is how many unhealthy machines are replaced; more look like a failure of something else, which replacing would make worse.
var maxUnhealthy = intstr.FromInt32(2)

// HealthCheckSettings are the times and bounds of a MachineHealthCheck.
type HealthCheckSettings struct {
	Timeout, StartupTimeout time.Duration
	MaxUnhealthy            intstr.IntOrString
}

// HealthCheckSettingsFor reads the overrides: those of the NodePool, then those of the HostedCluster. An override that can't be read is
// an error that names it.
func HealthCheckSettingsFor(slow bool, nodePool, hostedCluster map[string]string) (HealthCheckSettings, error) {
	s := HealthCheckSettings{Timeout: unhealthyAfter, StartupTimeout: startupTimeout, MaxUnhealthy: maxUnhealthy}
	if slow {
		s.Timeout = unhealthyAfterSlow
	}
	lookup := func(key string) (string, bool) {
		if v, ok := nodePool[key]; ok {
			return v, true
		}
		v, ok := hostedCluster[key]
		return v, ok
	}
	for key, into := range map[string]*time.Duration{
		hyperv1.MachineHealthCheckTimeoutAnnotation: &s.Timeout, hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation: &s.StartupTimeout,
	} {
		if v, ok := lookup(key); ok {
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return s, fmt.Errorf("annotation %s is not a duration: write for example 8m", key)
			}
			*into = d
		}
	}
	if v, ok := lookup(hyperv1.MachineHealthCheckMaxUnhealthyAnnotation); ok {
		limit := intstr.Parse(v)
		if n, err := intstr.GetScaledValueFromIntOrPercent(&limit, 100, false); err != nil || n < 0 {
			return s, fmt.Errorf("annotation %s is neither a number nor a percentage: write for example 2 or 40%%", hyperv1.MachineHealthCheckMaxUnhealthyAnnotation)
		}
		s.MaxUnhealthy = limit
	}
	return s, nil
}

// HealthCheck is the MachineHealthCheck of a pool that repairs itself.
func (p Pool) HealthCheck(s HealthCheckSettings) *clusterv1.MachineHealthCheck {
	timeout := seconds(&metav1.Duration{Duration: s.Timeout})
	return &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.NodePool.Name, Labels: p.labels(), Annotations: map[string]string{hyperv1.NodePoolAnnotation: p.key()},
		},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: p.InfraID,
			Selector:    metav1.LabelSelector{MatchLabels: p.selector()},
			Checks: clusterv1.MachineHealthCheckChecks{
				NodeStartupTimeoutSeconds: ptr.To(ptr.Deref(seconds(&metav1.Duration{Duration: s.StartupTimeout}), 0)),
				UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To(ptr.Deref(timeout, 0))},
					{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To(ptr.Deref(timeout, 0))},
					// A node with a full disk stays Ready. Its kubelet evicts pods and takes back the condition five minutes later if
					// that helped, so what lasts longer is a machine of no use. The published operator leaves it as it is.
					{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, TimeoutSeconds: ptr.To(ptr.Deref(timeout, 0))},
				},
			},
			Remediation: clusterv1.MachineHealthCheckRemediation{
				TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: &s.MaxUnhealthy},
			},
		},
	}
}

// SpotHealthCheckNames are what a pool's second MachineHealthCheck may be called: as published, and what it is called while a pool of the same hosted
// cluster has the first name, and so its own MachineHealthCheck there.
func SpotHealthCheckNames(pool string) [2]string {
	other := spotSuffix + "-" + digest([]byte(pool))
	return [2]string{Shorten(pool, maxName-len(spotSuffix)) + spotSuffix, Shorten(pool, maxName-len(other)) + other}
}

const spotSuffix = "-spot"

// SpotHealthCheck is the MachineHealthCheck of machines that may be taken away at any time: however many go at once, all are replaced. It is limited
// to the pool, so that no other pool's machines are judged twice. The name is one of SpotHealthCheckNames.
func (p Pool) SpotHealthCheck(name string) *clusterv1.MachineHealthCheck {
	check := p.HealthCheck(HealthCheckSettings{Timeout: unhealthyAfter, StartupTimeout: startupTimeout, MaxUnhealthy: intstr.FromString("100%")})
	check.Name = name
	check.Spec.Selector.MatchLabels[hyperv1.InterruptibleInstanceLabel] = ""
	return check
}
