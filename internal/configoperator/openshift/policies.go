package openshift

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Users that admission policies let through.
const (
	ourUser             = "system:hosted-cluster-config"
	bootstrapUser       = "system:kas-bootstrap-container"
	networkOperatorUser = "system:serviceaccount:openshift-network-operator:cluster-network-operator"
)

// policiesSince is the first minor version from which on IBM Cloud the policies exist.
const policiesSince = 17

// mirroredConfigLabel marks ConfigMaps that are copies of those in the control plane namespace.
const mirroredConfigLabel = "hypershift.openshift.io/mirrored-config"

// policy protects what belongs to the HostedCluster from changes in the hosted cluster.
type policy struct {
	name, group, version string
	resources            []string
	operations           []string
	users                []string
	selector             map[string]any // objects; nil: all
}

// admissionPolicies keep users of the hosted cluster from changing what its HostedCluster decides: the change would be undone later, and confuse until then.
func admissionPolicies(in Input) ([]Action, error) {
	at, err := minor(in.Release.Version)
	if err != nil {
		return nil, err
	}
	if in.on(hyperv1.IBMCloudPlatform) && at < policiesSince {
		return nil, nil
	}
	var actions []Action
	for _, p := range policies(in) {
		rules := []any{map[string]any{
			"apiGroups": list(p.group), "apiVersions": list(p.version), "resources": list(p.resources...), "operations": list(p.operations...), "scope": "*",
		}}
		match := map[string]any{"matchPolicy": "Equivalent", "resourceRules": rules}
		if p.selector != nil {
			match["objectSelector"] = p.selector
		}
		actions = append(actions, apply(guard(p.name, match, map[string]any{
			"expression": fmt.Sprintf("request.userInfo.username in ['%s'] || (has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec)", strings.Join(p.users, "', '")),
			"message":    "this belongs to the control plane: change it in the HostedCluster instead",
			"reason":     "Invalid",
		})...)...)
	}
	if in.on(hyperv1.AzurePlatform) && in.has(hyperv1.ImageRegistryCapability) {
		match := map[string]any{"matchPolicy": "Equivalent", "resourceRules": []any{map[string]any{
			"apiGroups": list("imageregistry.operator.openshift.io"), "apiVersions": list("v1"), "resources": list("configs"), "operations": list("CREATE", "UPDATE"), "scope": "*",
		}}}
		actions = append(actions, apply(guard(registryPolicy, match, map[string]any{
			"expression": fmt.Sprintf("object.spec.managementState != 'Removed' || request.userInfo.username == '%s'", ourUser),
			"message":    "managementState Removed would leave the storage of the registry behind: disable the capability ImageRegistry of the HostedCluster instead",
			"reason":     "Invalid",
		})...)...)
	}
	return actions, nil
}

// registryPolicy keeps the image registry from being removed on Azure.
const registryPolicy = "deny-removed-managementstate"

func policies(in Input) []policy {
	ours, changes := []string{ourUser, bootstrapUser}, []string{"UPDATE", "DELETE"}
	config := []string{"apiservers", "authentications", "featuregates", "images", "imagecontentpolicies", "proxies", "schedulers", "networks", "oauths"}
	mirrors := []string{"imagedigestmirrorsets", "imagetagmirrorsets"}
	if in.has(hyperv1.IngressCapability) {
		config = append(config, "ingresses")
	}
	if in.HCP.Spec.OLMCatalogPlacement == hyperv1.ManagementOLMCatalogPlacement {
		config, mirrors = append(config, "operatorhubs"), append(mirrors, "operatorhubs")
	}
	const group = "config.openshift.io"
	return []policy{
		{name: "config", group: group, version: "v1", resources: config, operations: changes, users: ours},
		{name: "mirror", group: group, version: "v1", resources: mirrors, operations: []string{"*"}, users: ours},
		{name: "icsp", group: "operator.openshift.io", version: "v1alpha1", resources: []string{"imagecontentsourcepolicies"}, operations: []string{"*"}, users: ours},
		{name: "infra", group: group, version: "v1", resources: []string{"infrastructures"}, operations: changes, users: append(ours[:2:2], networkOperatorUser)},
		{
			// ConfigMaps are of the core group. The published policy names this one, and so guards nothing; what it means to guard is put back by us.
			name: "ntomirroredconfigmaps", group: group, version: "v1", resources: []string{"configmaps"}, operations: changes, users: ours,
			selector: map[string]any{"matchLabels": map[string]any{mirroredConfigLabel: "true"}},
		},
	}
}

// guard is a policy with one rule, and the binding that has it enforced.
func guard(name string, match, validation map[string]any) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object(admissionV1, "ValidatingAdmissionPolicy", "", name, map[string]any{"spec": map[string]any{
			"matchConstraints": match, "validations": []any{validation},
		}}),
		object(admissionV1, "ValidatingAdmissionPolicyBinding", "", name+"-binding", map[string]any{"spec": map[string]any{
			"policyName": name, "validationActions": list("Deny"),
		}}),
	}
}
