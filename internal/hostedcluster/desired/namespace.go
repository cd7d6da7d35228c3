package desired

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/state"
)

// Levels of Pod Security Admission.
const (
	levelPrivileged = "privileged"
	levelBaseline   = "baseline"
	levelRestricted = "restricted"
)

// podSecurityLabels are those that set a level.
var podSecurityLabels = []string{hyperv1.PodSecurityEnforceLabel, hyperv1.PodSecurityAuditLabel, hyperv1.PodSecurityWarnLabel}

// NewNamespace is what is created, so that a namespace which appeared since it was looked for is refused by the API server and not adopted.
// The rest of Namespace is applied after it.
func NewNamespace(obs *state.Observed) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        names.NamespaceOf(obs.HC),
		Labels:      map[string]string{hyperv1.HostedControlPlaneLabel: "true"},
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(obs.HC)},
	}}
}

// Namespace is the control-plane namespace.
func Namespace(obs *state.Observed, monitoring bool) *corev1.Namespace {
	ns := NewNamespace(obs)
	ns.Labels[hyperv1.PodSecurityLabelSyncLabel] = "false"
	ns.Labels[state.MonitoringLabel] = "true"
	if monitoring {
		ns.Labels[hyperv1.ClusterMonitoringLabel] = "true"
	}
	for k, v := range podSecurity(obs.HC) {
		ns.Labels[k] = v
	}
	if obs.UID != 0 {
		ns.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation] = strconv.FormatInt(obs.UID, 10)
	}
	if id := obs.HC.Annotations[hyperv1.AzureHCPClusterResourceIDAnnotation]; id != "" {
		ns.Annotations[hyperv1.AzureHCPClusterResourceIDAnnotation] = id
	}
	return ns
}

// podSecurity is restricted, which all pods of ours bear whatever image they run, so that no image that somebody chose gets further. Machines of platform Local
// are privileged pods beside them. The annotation beats both; who may set it is a matter of admission.
func podSecurity(hc *hyperv1.HostedCluster) map[string]string {
	level := levelRestricted
	if hc.Spec.Platform.Type == hyperv1.LocalPlatform {
		level = levelPrivileged
	}
	switch override := hc.Annotations[hyperv1.PodSecurityAdmissionLabelOverrideAnnotation]; override {
	case levelPrivileged, levelBaseline, levelRestricted:
		level = override
	}
	labels := map[string]string{}
	for _, k := range podSecurityLabels {
		labels[k] = level
	}
	return labels
}
