// Package capiproxy puts the sidecar into pods that stands between a program which knows Cluster API by its standard groups and a management
// cluster that stores its objects in HyperShift's own: hcp-sidecar capi-proxy.
package capiproxy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	// Name is the container's in every pod.
	Name = "kube-apiserver-proxy"
	// HealthPortName is the port of probes and metrics.
	HealthPortName = "proxy-health"
	// Kubeconfig is the file by which programs in the pod reach it.
	Kubeconfig = folder + "/kubeconfig"

	folder     = "/var/run/kube-apiserver-proxy"
	healthPort = 6446

	// The proxy asks the API server once before it is ready, which takes milliseconds; a minute lets a management cluster recover.
	probePeriod   = 1
	probeFailures = 60
)

// Environment by which operators learn that the objects of Cluster API are stored in HyperShift's own groups, and which image proxies are to run.
const (
	EnvPrivateTypes = "PRIVATE_CAPI_TYPES"
	EnvImage        = "CAPI_PROXY_IMAGE"
)

// ImageLabel is "true" on images whose control-plane-operator puts proxies beside what it deploys.
const ImageLabel = "io.openshift.hypershift.capi-proxy-sidecar"

// Add adds what Container made to a pod and sets KUBECONFIG of its first container. A native sidecar starts before the others and ends after
// them, so that they can give back their leases. Without it, they are told --kubeconfig, too, so that they end and are started again until the
// proxy is there: a KUBECONFIG that doesn't exist is ignored, and they would talk to the management cluster itself.
func Add(pod *corev1.PodSpec, proxy corev1.Container, native bool) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		SizeLimit: ptr.To(resource.MustParse("1Mi")),
	}}})
	main := &pod.Containers[0]
	main.Env = append(main.Env, corev1.EnvVar{Name: "KUBECONFIG", Value: Kubeconfig})
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: Name, MountPath: folder, ReadOnly: true})
	if native {
		proxy.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		pod.InitContainers = slices.Insert(pod.InitContainers, 0, proxy)
		return
	}
	if !slices.ContainsFunc(main.Args, func(arg string) bool { return strings.HasPrefix(arg, "--kubeconfig") }) {
		main.Args = append(main.Args, "--kubeconfig="+Kubeconfig)
	}
	pod.Containers = append(pod.Containers, proxy)
}

// Container acts as the pod's ServiceAccount, and only for programs in the pod: it refuses to on the network of a node.
func Container(image string) corev1.Container {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	probe := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(healthPort), Scheme: corev1.URISchemeHTTP}}
	}
	return corev1.Container{
		Name: Name, Image: image, Command: []string{"/usr/bin/hcp-sidecar"},
		Args: []string{"capi-proxy", "--inject-token", "--write-kubeconfig=" + Kubeconfig},
		Env: []corev1.EnvVar{
			field("POD_IP", "status.podIP"), field("HOST_IP", "status.hostIP"),
			// One in many pods, and idle most of the time: memory matters more than speed.
			{Name: "GOGC", Value: "50"},
		},
		Ports: []corev1.ContainerPort{{Name: HealthPortName, ContainerPort: healthPort, Protocol: corev1.ProtocolTCP}},
		StartupProbe: &corev1.Probe{
			ProbeHandler: probe("/readyz"), PeriodSeconds: probePeriod, TimeoutSeconds: 5, FailureThreshold: probeFailures,
		},
		LivenessProbe: &corev1.Probe{ProbeHandler: probe("/healthz"), PeriodSeconds: 60, TimeoutSeconds: 30, FailureThreshold: 5},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("20Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: Name, MountPath: folder}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}
