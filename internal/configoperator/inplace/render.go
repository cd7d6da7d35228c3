package inplace

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const desiredDir = "/etc/machine-config-daemon-desired-config"

func managed() map[string]string { return map[string]string{hyperv1.ManagedLabel: "true"} }

// sharedObjects are the namespace and the configuration of an upgrade. That is a Secret, because it holds the credential that machines
// join with, and a pull secret: who may read ConfigMaps of the hosted cluster must not have those.
func sharedObjects(set, target, payload string) []client.Object {
	name := namespaceOf(set)
	labels := managed()
	for _, mode := range []string{"enforce", "audit", "warn"} {
		labels["pod-security.kubernetes.io/"+mode] = "privileged"
	}
	labels["security.openshift.io/scc.podSecurityLabelSync"] = "false"
	return []client.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, Labels: managed()},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{configKey: []byte(payload), hashKey: []byte(target)},
		},
	}
}

// daemon changes one node.
func daemon(set, node string, with settings) *corev1.Pod {
	host := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(set), Name: daemonPrefix + node, Labels: managed()},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, HostPID: true, RestartPolicy: corev1.RestartPolicyOnFailure,
			AutomountServiceAccountToken: ptr.To(false), PriorityClassName: "system-node-critical",
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "machine-config-daemon", Image: with.image, Env: with.env,
				Command: []string{"/usr/bin/machine-config-daemon"},
				Args: []string{
					"start", "--node-name=" + node, "--root-mount=/rootfs", "--kubeconfig=/var/lib/kubelet/kubeconfig", "--desired-configmap=" + desiredDir,
				},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0)},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "rootfs", MountPath: "/rootfs"}, {Name: "kubelet", MountPath: "/var/lib/kubelet", ReadOnly: true},
					{Name: "desired", MountPath: desiredDir, ReadOnly: true},
				},
			}},
			Volumes: []corev1.Volume{
				host("rootfs", "/"), host("kubelet", "/var/lib/kubelet"),
				{Name: "desired", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: namespaceOf(set), DefaultMode: ptr.To[int32](0o400)}}},
			},
		},
	}
}
