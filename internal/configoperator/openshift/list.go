package openshift

import (
	"errors"
	"fmt"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Step is a group of Actions with one purpose.
type Step struct {
	// Name is the word for the group in messages.
	Name string
	// Plan gives the Actions in order. An error says what the input lacks; the other steps are done all the same.
	Plan func(Input) ([]Action, error)
}

// steps are in the order in which they are done.
var steps = []Step{
	{"request counts", requestCounts},
	{"API server endpoints", kubernetesEndpoints},
	{"admission policies", admissionPolicies},
	{"installation records", installRecords},
	{"alerts", alerts},
	{"cluster version", clusterVersion},
	{"cluster operators", clusterOperators},
	{"settings", settings},
	{"namespaces", namespaces},
	{"roles", roles},
	{"image registry", imageRegistry},
	{"ingress", ingress},
	{"passthrough of applications", passthrough},
	{"load balancers beside virtual machines", balancers},
	{"external login", externalLogin},
	{"signers", signers},
	{"tunnel", tunnel},
	{"aggregated APIs", aggregatedAPIs},
	{"kubeadmin", kubeadminUser},
	{"monitoring", monitoring},
	{"metrics forwarder", metricsForwarder},
	{"network operator", networkOperator},
	{"pull secrets", pullSecrets},
	{"global pull secret", globalPullSecrets},
	{"trust", userTrust},
	{"controller trust", controllerTrust},
	{"login", login},
	{"cloud credentials", credentials},
	{"catalogs", catalogs},
	{"storage", storage},
	{"volume recycler", volumeRecycler},
	{"settings of kubelets", kubeletConfigs},
	{"identity webhooks", identityWebhooks},
	{"Azure nodes", azureNodes},
	{"observed authorities", observedAuthorities},
	{"leftovers", leftovers},
}

// Plan gives the Actions of all steps, and the joined errors of those steps that can't be planned. Objects of the hosted cluster are marked as ours.
func Plan(in Input) ([]Action, error) {
	var actions []Action
	var errs []error
	for _, step := range steps {
		planned, err := step.Plan(in)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.Name, err))
		}
		for _, a := range planned {
			if !a.Management {
				a = marked(a)
			}
			actions = append(actions, a)
		}
	}
	return actions, errors.Join(errs...)
}

// marked is an action whose object gets the label of ours.
func marked(a Action) Action {
	switch a.Do {
	case Delete, DeleteOwn:
	case Edit, EditPresent:
		change := a.Change
		a.Change = func(live map[string]any) {
			change(live)
			section(live, "metadata", "labels")[hyperv1.ManagedLabel] = "true"
		}
	default:
		labels := a.Object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[hyperv1.ManagedLabel] = "true"
		a.Object.SetLabels(labels)
	}
	return a
}
