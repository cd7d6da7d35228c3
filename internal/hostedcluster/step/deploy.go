package step

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	payloadprovider "hcp.internal/platform/internal/controlplane/openshift/capiprovider"
	payloadclusterapi "hcp.internal/platform/internal/controlplane/openshift/clusterapi"
	"hcp.internal/platform/internal/controlplane/openshift/controlplaneoperator"
	"hcp.internal/platform/internal/controlplane/trouble"
)

// Deployment says which components a step brings to what. Each is planned when its turn comes, because it goes by what the steps and the
// components before it have written.
type Deployment struct {
	// Context is what they are planned from, without Context, Reader and Trouble, which come with the pass.
	Context component.WorkloadContext
	// Troubles are why pods do not run.
	Troubles []trouble.Trouble

	ControlPlaneOperator *cpo.Options // nil: not in this step
	ClusterAPI           *ClusterAPI  // nil: not in this step
}

// payload says whether the components are those of an OpenShift payload, whose forms are as published.
func (d Deployment) payload() bool { return d.Context.Release != nil && !d.Context.Release.Kubernetes }

// ClusterAPI is Cluster API's manager and the infrastructure provider of the platform.
type ClusterAPI struct {
	Manager  clusterapi.Options
	Provider capiprovider.Options
	// Pools: there are machines to manage, or will be. Without a pool there are none. No manager of Cluster API has added a finalizer to such a Cluster,
	// so its deletion waits for none.
	Pools bool
}

// Components in their order. One that fails ends the step.
func (d Deployment) Components() (list []component.Component) {
	switch o := d.ControlPlaneOperator; {
	case o == nil:
	case d.payload():
		list = append(list, controlplaneoperator.NewComponent(payloadOptions(*o)))
	default:
		list = append(list, cpo.NewComponent(*o))
	}
	switch c := d.ClusterAPI; {
	case c == nil:
	case d.payload():
		list = append(list, c.payloadComponents(d.Context.HCP)...)
	default:
		pools := func(component.WorkloadContext) (bool, error) { return c.Pools, nil }
		list = append(list, clusterapi.NewComponent(c.Manager).SleepUntil(pools), capiprovider.NewComponent(c.Provider).SleepUntil(pools))
	}
	return list
}

// payloadComponents are Cluster API's manager, and the provider of a platform that the payload has an image for, or else the platform's own.
func (c ClusterAPI) payloadComponents(hcp *hyperv1.HostedControlPlane) []component.Component {
	pools := func(component.WorkloadContext) (bool, error) { return c.Pools, nil }
	if !c.Manager.Enabled { // what there is of the component is removed
		return []component.Component{clusterapi.NewComponent(c.Manager), capiprovider.NewComponent(c.Provider)}
	}
	list := []component.Component{payloadclusterapi.NewComponent().SleepUntil(pools)}
	if payloadprovider.Offered(hcp) {
		return append(list, payloadprovider.NewComponent(hcp.Spec.Platform.Type).SleepUntil(pools))
	}
	return append(list, capiprovider.NewComponent(c.Provider).SleepUntil(pools))
}

// payloadOptions are those of the control-plane-operator in the form of OpenShift payloads.
func payloadOptions(o cpo.Options) controlplaneoperator.Options {
	return controlplaneoperator.Options{
		CertRotationScale: o.CertRotationScale, FeatureSet: o.FeatureSet, DefaultIngressDomain: o.DefaultIngressDomain, Management: true, Version: o.Version,
	}
}

// trouble is that of a component, for its report. What nobody asked about stays without an answer.
func (d Deployment) trouble(name string) (reason, message string) {
	if t := trouble.Of(d.Troubles, name); t != nil {
		return t.Reason, t.Message
	}
	return "", ""
}

// ServingCertificate is a Secret with a self-signed certificate that is made once.
type ServingCertificate struct {
	Secret client.ObjectKey
	Host   string
	Kind   corev1.SecretType
}
