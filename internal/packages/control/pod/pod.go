// Package pod is what the pods of the operator of packages and of its connectors have in common.
package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Program is the binary that holds both; the first argument says which one runs.
const Program = "/usr/bin/hcp-operators"

// ConnectorName is that of a connector: its program, its Deployment, and label app.kubernetes.io/name of its pod.
const ConnectorName = "package-operator-remote-phase-manager"

// ConnectorRequests are what the pod of a connector asks for. The hypershift-operator keeps room for it, see internal/capacity.
func ConnectorRequests() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("40Mi")}
}

// Container runs a program of ours, without what depends on the place: resources and volumes. Its probes look every so many seconds.
func Container(image, program string, probeSeconds, failures int32, args ...string) corev1.Container {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health"), Scheme: corev1.URISchemeHTTP}},
			PeriodSeconds: probeSeconds, TimeoutSeconds: 5, SuccessThreshold: 1, FailureThreshold: failures,
		}
	}
	return corev1.Container{
		Name: "manager", Image: image, Command: []string{Program, program}, Args: args,
		Env: []corev1.EnvVar{
			field("PKO_NAMESPACE", "metadata.namespace"), field("PKO_SERVICE_ACCOUNT_NAMESPACE", "metadata.namespace"),
			field("PKO_SERVICE_ACCOUNT_NAME", "spec.serviceAccountName"),
		},
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "health", ContainerPort: 8081, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}
