package hostedcluster

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/step"
)

// publication is a Secret that the user finds beside the HostedCluster.
type publication struct {
	name, key string
	content   []byte
	wanted    bool // false: it must not exist
}

// publish is the step that copies the control plane's credentials to the user's namespace, and takes back those that no longer hold.
func publish(obs *state.Observed) step.Step {
	s := step.Step{Name: step.Kubeconfig, Class: step.Blockable}
	supportsCustom := obs.OperatorLabels == nil || obs.OperatorLabels[state.LabelCustomKubeconfig] == "true"
	for _, p := range []publication{
		{state.AdminKubeconfigName(obs.HC.Name), state.KubeconfigKey, obs.Published.Kubeconfig, true},
		{state.CustomKubeconfigName(obs.HC.Name), state.KubeconfigKey, obs.Published.Custom, supportsCustom && obs.HC.Spec.KubeAPIServerDNSName != ""},
		{state.KubeadminPasswordName(obs.HC.Name), state.PasswordKey, obs.Published.Password, obs.HCP != nil && obs.HCP.Status.KubeadminPassword != nil},
	} {
		switch {
		case !p.wanted && obs.Published.Existing[p.name]:
			s.Delete = append(s.Delete, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obs.HC.Namespace, Name: p.name}})
		case !p.wanted || len(p.content) == 0:
		case obs.Published.Foreign[p.name]:
			s.Err = errors.Join(s.Err, fmt.Errorf("Secret %s/%s exists and is not of this HostedCluster: rename or delete it, so that the credentials can be published there",
				obs.HC.Namespace, p.name))
		default:
			s.Apply = append(s.Apply, publishedSecret(obs.HC, p))
		}
	}
	return s
}

func publishedSecret(hc *hyperv1.HostedCluster, p publication) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hc.Namespace, Name: p.name,
			Labels:          maps.Clone(hc.Labels),
			OwnerReferences: []metav1.OwnerReference{ownerReference(hc)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{p.key: p.content},
	}
}

func ownerReference(hc *hyperv1.HostedCluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Name: hc.Name, UID: hc.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
}
