package cloud

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// manager is the container of every provider.
const manager = "manager"

// Provider says how the provider of a platform runs. It is for clusters whose release is none of OpenShift's: what comes with a payload runs as its
// component there.
type Provider struct {
	// Tag of the image in a release, and Annotation of the HostedCluster that names another.
	Tag, Annotation string
	// Command and Args; the flag that restricts it to its namespace is among Args.
	Command, Args []string
	Env           []corev1.EnvVar
	// CPU and Memory that it asks for; CPU is 10m if empty.
	CPU, Memory string
	// Health is the port of its probes where that is not 9440, and the others when its liveness is asked for, in seconds.
	Health, LivenessDelay, LivenessPeriod int32
	// Secret of credentials, mounted at Dir; empty: none.
	Secret, Dir string
}

// Deployment is the pod template of the provider. Volumes for its webhooks, its identity and MY_NAMESPACE come with the component.
func (p Provider) Deployment(hc *hyperv1.HostedCluster) *appsv1.DeploymentSpec {
	c := corev1.Container{
		Name: manager, Image: cmp.Or(hc.Annotations[p.Annotation], p.Tag), Command: p.Command, Args: append([]string{}, p.Args...), Env: append([]corev1.EnvVar{}, p.Env...),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cmp.Or(p.CPU, "10m")), corev1.ResourceMemory: resource.MustParse(p.Memory),
		}},
	}
	if p.Health != 0 {
		c.Ports = []corev1.ContainerPort{{Name: "healthz", ContainerPort: p.Health, Protocol: corev1.ProtocolTCP}}
		probe := func(path string) *corev1.Probe {
			return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("healthz")}}}
		}
		c.LivenessProbe, c.ReadinessProbe = probe("/healthz"), probe("/readyz")
		c.LivenessProbe.InitialDelaySeconds, c.LivenessProbe.PeriodSeconds = p.LivenessDelay, p.LivenessPeriod
	}
	spec := &appsv1.DeploymentSpec{}
	if p.Secret != "" {
		const volume = "credentials"
		c.VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: p.Dir, ReadOnly: true}}
		spec.Template.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: p.Secret}}}}
	}
	spec.Template.Spec.Containers = []corev1.Container{c}
	return spec
}

// Everything may be done with resources of a group.
func Everything(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
}
