package openshift

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// maxObserved bounds what of an object of the hosted cluster is copied to the control plane: a setting, and no store for others' data.
const maxObserved = 64 << 10

// observedSettings copy what openshift-controller-manager and openshift-apiserver have to know of the hosted cluster's own settings to the
// control plane: ConfigMaps with the object under key config.
func observedSettings(in Input) []Action {
	var actions []Action
	for _, o := range []struct{ kind, name string }{{"Build", payload.ObservedBuild}, {"Project", payload.ObservedProject}} {
		live := in.Hosted.Objects[o.kind+" /"+cluster]
		cm := configMap(in.HCP.Namespace, o.name, nil)
		a := Action{Do: Delete, Object: cm, Management: true}
		if live != nil {
			raw, err := json.Marshal(strippedOf(live))
			if err != nil || len(raw) > maxObserved {
				continue // what was copied before stays
			}
			owned(cm, in)
			cm.Object["data"] = map[string]any{payload.ObservedKey: string(raw)}
			a.Do = Apply
		}
		actions = append(actions, a)
	}
	return actions
}

// strippedOf is an object without what changes though it says the same.
func strippedOf(live map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: live}).DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u.Object
}

// owned is an object of the control plane namespace that goes with the HostedControlPlane.
func owned(u *unstructured.Unstructured, in Input) { own(u, in) }

func own(obj client.Object, in Input) {
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(in.HCP, hyperv1.GroupVersion.WithKind("HostedControlPlane"))})
}

// Authorities of the hosted cluster that the control plane trusts: those that sign certificates of Services, and of Routes.
const (
	managedConfig = "openshift-config-managed"
	serviceCA     = "service-ca"
	ingressCA     = "default-ingress-cert"
)
