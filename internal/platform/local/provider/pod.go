package provider

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/platform/machine"
)

const (
	// stopSeconds is how long a machine may take to power off.
	stopSeconds = 10
	// userDataMode keeps the user data, which holds a token, from all but root.
	userDataMode = 0o400
)

// What a machine asks of the node unless its bounds are smaller. It is little: workers of a developer's machine mostly idle.
var (
	requestCPU    = resource.MustParse("100m")
	requestMemory = resource.MustParse("256Mi")
)

// placement is how pods of machines are scheduled.
type placement struct {
	priorityClass string
	gate          string // scheduling gate; empty: none
}

func placementFromEnv(getenv func(string) string) placement {
	return placement{priorityClass: getenv(machine.EnvPriorityClass), gate: getenv(machine.EnvSchedulingGate)}
}

// machinePod is the pod that a machine is.
func machinePod(local *infrav1.LocalMachine, secret string, place placement) *corev1.Pod {
	labels := map[string]string{infrav1.MachineLabel: labelValue(local.Name)}
	if cluster := local.Labels[clusterLabel]; cluster != "" {
		labels[clusterLabel] = cluster
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: local.Namespace, Name: local.Name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(local, infrav1.GroupVersion.WithKind("LocalMachine"))},
		},
		Spec: corev1.PodSpec{
			// An end with an error is a crash or a reboot; an end without one is somebody switching the machine off.
			RestartPolicy:                 corev1.RestartPolicyOnFailure,
			TerminationGracePeriodSeconds: ptr.To[int64](stopSeconds),
			PriorityClassName:             place.priorityClass,
			// Whoever owns the machine must not get at the management cluster.
			AutomountServiceAccountToken: ptr.To(false),
			EnableServiceLinks:           ptr.To(false),
			ImagePullSecrets:             []corev1.LocalObjectReference{{Name: names.PullSecret}},
			Containers: []corev1.Container{{
				Name:      "machine",
				Image:     local.Spec.Image,
				Resources: machineResources(local.Spec),
				Env:       machineEnvironment(local),
				SecurityContext: &corev1.SecurityContext{
					Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false), AllowPrivilegeEscalation: ptr.To(true),
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "disk", MountPath: "/var"},
					{Name: "user-data", MountPath: "/machine/user-data", ReadOnly: true},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: local.Spec.RootVolumeSize}}},
				{Name: "user-data", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
					SecretName: secret, DefaultMode: ptr.To[int32](userDataMode), Items: []corev1.KeyToPath{{Key: userDataKey, Path: userDataKey}},
					// The Secret goes when the next generation of user data has come. A machine that has booted does without.
					Optional: ptr.To(true),
				}}},
			},
		},
	}
	if place.gate != "" {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: place.gate}}
	}
	if len(local.Name) <= maxLabel {
		pod.Spec.Hostname = local.Name
	}
	return pod
}

// machineEnvironment is what a machine's init is told.
func machineEnvironment(local *infrav1.LocalMachine) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "MACHINE_PROVIDER_ID", Value: providerID(local.Namespace, local.Name)},
		{Name: "MACHINE_NODE_NAME", Value: local.Name},
		{Name: "MACHINE_NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
	}
	// The container's limits bound what is used; these make the kubelet report the same numbers.
	if cpu := local.Spec.CPU; cpu != nil {
		env = append(env, corev1.EnvVar{Name: "MACHINE_CPUS", Value: strconv.FormatInt(processors(*cpu), 10)})
	}
	if memory := local.Spec.Memory; memory != nil {
		env = append(env, corev1.EnvVar{Name: "MACHINE_MEMORY", Value: strconv.FormatInt(memory.Value(), 10)})
	}
	return env
}

// processors is the whole number that a kubelet can report: a machine with half a processor has one that is slow.
func processors(cpu resource.Quantity) int64 { return max(cpu.Value(), 1) }

func machineResources(spec infrav1.LocalMachineSpec) corev1.ResourceRequirements {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	set := func(name corev1.ResourceName, usual resource.Quantity, bound *resource.Quantity) {
		if bound != nil {
			out.Limits[name] = *bound
			if bound.Cmp(usual) < 0 {
				usual = *bound
			}
		}
		out.Requests[name] = usual
	}
	set(corev1.ResourceCPU, requestCPU, spec.CPU)
	set(corev1.ResourceMemory, requestMemory, spec.Memory)
	return out
}
