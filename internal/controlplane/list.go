// Package controlplane lists the components of a hosted control plane.
package controlplane

import (
	"sync"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/autoscaler"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/configoperator"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/controlplane/ignitionserver"
	"hcp.internal/platform/internal/controlplane/karpenter"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/controlplane/kubecontrollermanager"
	"hcp.internal/platform/internal/controlplane/kubescheduler"
	"hcp.internal/platform/internal/controlplane/openshift"
	"hcp.internal/platform/internal/controlplane/pkioperator"
	"hcp.internal/platform/internal/release"
)

// Components are the components of a Kubernetes release that the control-plane-operator keeps, in the order in which it reconciles them. A new one
// is a folder beside this file and a line here. Those of OpenShift payloads are in folder openshift.
func Components() []component.Component {
	var list []component.Component
	for _, c := range workloads() {
		list = append(list, c)
	}
	return list
}

func workloads() []*component.WorkloadComponent {
	return []*component.WorkloadComponent{
		etcd.NewComponent(),
		kubeapiserver.NewComponent(),
		kubecontrollermanager.NewComponent(),
		kubescheduler.NewComponent(),
		configoperator.NewComponent(),
		ignitionserver.NewComponent(),
		autoscaler.NewComponent(),
		pkioperator.NewComponent(),
	}
}

// own are the Components, made once: parsing all their manifests takes longer than planning them.
var own = sync.OnceValue(Components)

// ComponentsOf are the components of one control plane, in the order in which they are reconciled: the shards of etcd come right after it. r is the
// release of the control plane; nil means one of Kubernetes.
func ComponentsOf(hcp *hyperv1.HostedControlPlane, r *release.Release) []component.Component {
	if r != nil && !r.Kubernetes {
		return openshift.ComponentsOf(hcp)
	}
	var list []component.Component
	for _, c := range own() {
		list = append(list, c)
		if c.Name() == etcd.Name {
			list = append(list, etcd.Shards(hcp)...)
		}
	}
	if karpenter.Concerns(hcp) {
		list = append(list, autoNode())
	}
	return list
}

// autoNode is the component of spec.autoNode, made once. It is not among the Components, as few control planes ask for it, and releases need not have it.
var autoNode = sync.OnceValue(karpenter.NewComponent)

// imageTags are the tags that components need. Building the components parses all their manifests, so that it is done once.
var imageTags = sync.OnceValue(func() (tags []string) {
	for _, c := range workloads() {
		tags = append(tags, c.ImageTags()...)
	}
	return tags
})

// MissingImages are the tags that the components of a control plane need and its release does not have, sorted. Of OpenShift payloads, whose components
// are many, it asks those that the control plane has.
func MissingImages(ctx component.WorkloadContext) ([]string, error) {
	if ctx.Release.Kubernetes {
		return ctx.Release.Missing(imageTags()...), nil
	}
	tags, err := openshift.ImageTagsOf(ctx)
	if err != nil {
		return nil, err
	}
	return ctx.Release.Missing(tags...), nil
}
