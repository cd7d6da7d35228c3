package openshift

import (
	"encoding/base64"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// pullSecrets give the hosted cluster's operators, and imports of images, the credentials of the control plane. With the annotation for it they are the
// hosted cluster's to change once they are there.
func pullSecrets(in Input) ([]Action, error) {
	pull := in.secret(in.HCP.Spec.PullSecret.Name)
	if pull == nil || len(pull.Data[corev1.DockerConfigJsonKey]) == 0 {
		return nil, errors.New("the pull secret is not in the control plane namespace yet")
	}
	var actions []Action
	for _, namespace := range []string{"openshift-config", "openshift"} {
		actions = append(actions, edit(core, "Secret", namespace, "pull-secret", func(live map[string]any) {
			if _, once := in.HCP.Annotations[hyperv1.EnsureExistsPullSecretReconciliation]; once && len(peek(live, "data")) > 0 {
				return
			}
			live["data"], live["type"] = secretData(pull.Data), string(pull.Type)
		}))
	}
	return actions, nil
}

func secretData(data map[string][]byte) map[string]any {
	out := map[string]any{}
	for k, v := range data {
		out[k] = base64.StdEncoding.EncodeToString(v)
	}
	return out
}

// secret is a Secret of the hosted cluster. Without a type it is Opaque, or what it was.
func secret(namespace, name string, kind corev1.SecretType, data map[string][]byte) *unstructured.Unstructured {
	u := object(core, "Secret", namespace, name, map[string]any{"data": secretData(data)})
	if kind != "" {
		u.Object["type"] = string(kind)
	}
	return u
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
