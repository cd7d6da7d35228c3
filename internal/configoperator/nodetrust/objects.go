package nodetrust

import (
	_ "embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodetrust"
)

const (
	// daemonSet is the name of the DaemonSet and its ServiceAccount, in namespace, and the value of appLabel on its pods.
	daemonSet = "node-trust"
	namespace = metav1.NamespaceSystem
	appLabel  = "app"
	// hashAnnotation on pods is the hash of what they give their node.
	hashAnnotation = "node-trust.hypershift.openshift.io/hash"
)

//go:embed daemonset.yaml
var daemonSetYAML []byte

// objects are what runs on nodes for data of ConfigMap node-trust, in the order of application. Without an image there is only the ConfigMap.
func objects(data map[string]string, image string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: daemonSet, Labels: map[string]string{hyperv1.ManagedLabel: "true"}}
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: *meta.DeepCopy(),
		Data: map[string]string{nodetrust.RootKey: data[nodetrust.RootKey], nodetrust.KubeletKey: data[nodetrust.KubeletKey]},
	}
	cm.Name = nodetrust.ConfigMap
	if image == "" {
		return []client.Object{cm}
	}
	no := false
	account := &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta, AutomountServiceAccountToken: &no}
	daemons := &appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict(daemonSetYAML, daemons); err != nil {
		panic(fmt.Sprintf("daemonset.yaml: %v", err)) // which any test finds
	}
	daemons.Labels[hyperv1.ManagedLabel] = "true"
	hash := nodetrust.HashOf(data)
	daemons.Spec.Template.Annotations = map[string]string{hashAnnotation: hash}
	c := &daemons.Spec.Template.Spec.Containers[0]
	c.Image, c.Args = image, append(c.Args, "--hash="+hash)
	return []client.Object{cm, account, daemons}
}
