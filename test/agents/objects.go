package agents

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	provided    = schema.GroupVersion{Group: "capi-provider.agent-install.openshift.io", Version: "v1beta1"}
	clusterKind = provided.WithKind("AgentCluster")
	machineKind = provided.WithKind("AgentMachine")
	// HostKind is that of Agents.
	HostKind = schema.GroupVersionKind{Group: "agent-install.openshift.io", Version: "v1beta1", Kind: "Agent"}
)

// reference names an object.
type reference struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

type agentCluster struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		IgnitionEndpoint *struct {
			URL string     `json:"url"`
			CA  *reference `json:"caCertificateReference"`
		} `json:"ignitionEndpoint"`
		ControlPlaneEndpoint struct {
			Host string `json:"host"`
			Port int32  `json:"port"`
		} `json:"controlPlaneEndpoint"`
	} `json:"spec"`
	Status clusterStatus `json:"status"`
}

type clusterStatus struct {
	Ready             bool               `json:"ready,omitempty"`
	ClusterDeployment *reference         `json:"clusterDeploymentReference,omitempty"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

type agentMachine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ProviderID         string                `json:"providerID,omitempty"`
		AgentLabelSelector *metav1.LabelSelector `json:"agentLabelSelector,omitempty"`
	} `json:"spec"`
	Status machineStatus `json:"status"`
}

type machineStatus struct {
	Ready      bool               `json:"ready,omitempty"`
	AgentRef   *reference         `json:"agentRef,omitempty"`
	Addresses  []address          `json:"addresses,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

type agent struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              agentSpec   `json:"spec"`
	Status            agentStatus `json:"status"`
}

type agentSpec struct {
	Approved              bool              `json:"approved,omitempty"`
	Hostname              string            `json:"hostname,omitempty"`
	ClusterDeploymentName *reference        `json:"clusterDeploymentName,omitempty"`
	Token                 *reference        `json:"ignitionEndpointTokenReference,omitempty"`
	Headers               map[string]string `json:"ignitionEndpointHTTPHeaders,omitempty"`
	NodeLabels            map[string]string `json:"nodeLabels,omitempty"`
}

type agentStatus struct {
	DebugInfo struct {
		State string `json:"state,omitempty"`
	} `json:"debugInfo,omitzero"`
	Inventory struct {
		Interfaces []networkInterface `json:"interfaces,omitempty"`
	} `json:"inventory,omitzero"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type networkInterface struct {
	Name string   `json:"name"`
	IPv4 []string `json:"ipV4Addresses,omitempty"`
}

// node is the name of the host's node.
func (a *agent) node() string {
	if a.Spec.Hostname != "" {
		return a.Spec.Hostname
	}
	return a.Name
}

// providerID names a host for its node and for Cluster API.
func providerID(host string) string { return "agent://" + host }
