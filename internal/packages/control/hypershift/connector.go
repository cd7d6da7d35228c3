package hypershift

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/memorylimit"
	"hcp.internal/platform/internal/packages/control/connector"
	"hcp.internal/platform/internal/packages/control/pod"
)

// deployment is what a connector is made from.
type deployment struct {
	// Namespace of the hosted control plane.
	Namespace string
	// Owners is the annotation that names the HostedCluster.
	Owners string
	// Image holds the connector.
	Image string
	// NodeSelector and Tolerations of the hosted cluster, so that the connector may run where its control plane does.
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Affinity and MoreTolerations of the operator's helpers.
	Affinity        *corev1.Affinity
	MoreTolerations []corev1.Toleration
	// PriorityClass is that of the control plane's lesser parts.
	PriorityClass string
	// UserID that the connector runs as; nil lets the management cluster choose.
	UserID *int64
}

// objects are those of a connector, in the order in which they are needed.
func (d deployment) objects() []client.Object {
	meta := metav1.ObjectMeta{
		Namespace: d.Namespace, Name: connector.Name, Labels: maps.Clone(labels), Annotations: map[string]string{v1alpha1.OwnersAnnotation: d.Owners},
	}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy(), ImagePullSecrets: []corev1.LocalObjectReference{{Name: pullSecret}}},
		&rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: connectorRules()},
		&rbacv1.RoleBinding{
			ObjectMeta: *meta.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: connector.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: connector.Name, Namespace: d.Namespace}},
		},
		&appsv1.Deployment{ObjectMeta: *meta.DeepCopy(), Spec: d.spec()},
	}
}

// connectorRules are the rights of a connector in its namespace. It reads revisions only to know which phases may hand over to which.
func connectorRules() []rbacv1.PolicyRule {
	packages := []string{v1alpha1.GroupVersion.Group}
	return []rbacv1.PolicyRule{
		{APIGroups: packages, Resources: []string{"objectsetphases"}, Verbs: []string{"get", "list", "watch", "patch"}},
		{APIGroups: packages, Resources: []string{"objectsetphases/status"}, Verbs: []string{"get", "patch"}},
		{APIGroups: packages, Resources: []string{"objectsets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		// Other leases of the namespace are those of the control plane. A name can't bound what is created.
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{connector.LeaseName}, Verbs: []string{"get", "update"}},
	}
}

func (d deployment) spec() appsv1.DeploymentSpec {
	podLabels := maps.Clone(labels)
	podLabels[hyperv1.NeedManagementKASAccessLabel] = "true"
	return appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), RevisionHistoryLimit: ptr.To[int32](2),
		Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
			Spec: corev1.PodSpec{
				ServiceAccountName: connector.Name,
				PriorityClassName:  d.PriorityClass,
				NodeSelector:       maps.Clone(d.NodeSelector),
				Tolerations:        slices.Concat(d.dedicated(), d.Tolerations, d.MoreTolerations),
				Affinity:           d.Affinity.DeepCopy(),
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), RunAsUser: d.UserID,
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{d.container()},
				Volumes: []corev1.Volume{{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{
					Secret: &corev1.SecretVolumeSource{SecretName: kubeconfigSecret, Optional: ptr.To(false)},
				}}},
			},
		},
	}
}

// dedicated are nodes that are kept for control planes, or for this one.
func (d deployment) dedicated() []corev1.Toleration {
	tolerate := func(key, value string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	return []corev1.Toleration{tolerate("hypershift.openshift.io/control-plane", "true"), tolerate("hypershift.openshift.io/cluster", d.Namespace)}
}

// memoryLimit is far above what a connector needs: a hosted cluster that fills its memory shall take nothing from others.
const memoryLimit = "512Mi"

func (d deployment) container() corev1.Container {
	c := pod.Container(d.Image, connector.Name, 20, 3,
		"--enable-leader-election", fmt.Sprintf("--target-cluster-kubeconfig-file=%s/%s", kubeconfigFolder, kubeconfigKey), "--class="+connector.DefaultClass)
	c.Resources = corev1.ResourceRequirements{Requests: pod.ConnectorRequests()}
	memorylimit.Set(&c, memoryLimit)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "kubeconfig", MountPath: kubeconfigFolder, ReadOnly: true}}
	return c
}
