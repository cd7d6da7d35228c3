package hostedcluster

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// publication is a Secret that the user finds beside the HostedCluster.
type publication struct {
	name, key string
	content   []byte
	wanted    bool // false: it must not exist
}

// publish is the step that copies the control plane's credentials to the user's namespace, and takes back those that no longer hold.
func publish(obs *observed) step {
	s := step{name: stepKubeconfig, class: blockable}
	supportsCustom := obs.operatorLabels == nil || obs.operatorLabels[labelCustomKubeconfig] == "true"
	for _, p := range []publication{
		{adminKubeconfigName(obs.hc.Name), kubeconfigKey, obs.published.kubeconfig, true},
		{customKubeconfigName(obs.hc.Name), kubeconfigKey, obs.published.custom, supportsCustom && obs.hc.Spec.KubeAPIServerDNSName != ""},
		{kubeadminPasswordName(obs.hc.Name), passwordKey, obs.published.password, obs.hcp != nil && obs.hcp.Status.KubeadminPassword != nil},
	} {
		switch {
		case !p.wanted && obs.published.existing[p.name]:
			s.delete = append(s.delete, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obs.hc.Namespace, Name: p.name}})
		case !p.wanted || len(p.content) == 0:
		case obs.published.foreign[p.name]:
			s.err = errors.Join(s.err, fmt.Errorf("Secret %s/%s exists and is not of this HostedCluster: rename or delete it, so that the credentials can be published there",
				obs.hc.Namespace, p.name))
		default:
			s.apply = append(s.apply, publishedSecret(obs.hc, p))
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
