package openshift

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// RegistryKind are the settings of the image registry.
var RegistryKind = schema.GroupVersionKind{Group: "imageregistry.operator.openshift.io", Version: "v1", Kind: "Config"}

// blockCreation is the webhook that nobody answers, so that nothing new comes while what is there goes.
const blockCreation = "block-resources.hypershift.openshift.io"

// PrepareRemoval are the actions before what a hosted cluster has in a cloud is removed: nothing of the kind is made any more, and the image registry gives its
// storage up.
func PrepareRemoval(hcp *hyperv1.HostedControlPlane) []Action {
	create := func(group, version string, resources ...string) any {
		return map[string]any{"apiGroups": list(group), "apiVersions": list(version), "operations": list("CREATE"), "resources": list(resources...), "scope": "*"}
	}
	rules := []any{create("", "v1", "pods", "persistentvolumeclaims", "persistentvolumes", "services")}
	if payload.HasCapability(hcp, hyperv1.IngressCapability) {
		rules = append(rules, create("operator.openshift.io", "v1", "ingresscontrollers"))
	}
	var actions []Action
	if hcp.Spec.Platform.Type == hyperv1.AzurePlatform {
		actions = append(actions, remove(admissionV1, "ValidatingAdmissionPolicyBinding", "", registryPolicy+"-binding"), remove(admissionV1, "ValidatingAdmissionPolicy", "", registryPolicy))
	}
	block := marked(apply(object(admissionV1, "ValidatingWebhookConfiguration", "", blockCreation, map[string]any{"webhooks": []any{map[string]any{
		"name": blockCreation, "failurePolicy": "Fail", "timeoutSeconds": int64(30), "sideEffects": "None", "admissionReviewVersions": list("v1"), "rules": rules,
		"clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "xxx-invalid-service-xxx", "port": int64(443), "path": "/validate"}},
	}}}))[0])
	registry := marked(Action{Do: EditPresent, Object: reference(imageRegistryV1, "Config", "", cluster), Change: func(live map[string]any) {
		section(live, "spec")["managementState"] = "Removed"
	}})
	return append(actions, block, registry)
}
