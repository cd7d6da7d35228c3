// Package openshift lists the components of a hosted control plane whose release is an OpenShift payload. Each is a folder beside this file and a
// line in Components; what several have in common is in kit, what all have in common in the framework (../component).
package openshift

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/awsnodeterminationhandler"
	"hcp.internal/platform/internal/controlplane/openshift/cloudcontrollermanager"
	"hcp.internal/platform/internal/controlplane/openshift/cloudcredentialoperator"
	"hcp.internal/platform/internal/controlplane/openshift/clusterautoscaler"
	"hcp.internal/platform/internal/controlplane/openshift/clusterimageregistryoperator"
	"hcp.internal/platform/internal/controlplane/openshift/clusternetworkoperator"
	"hcp.internal/platform/internal/controlplane/openshift/clusternodetuningoperator"
	"hcp.internal/platform/internal/controlplane/openshift/clusterpolicycontroller"
	"hcp.internal/platform/internal/controlplane/openshift/clusterstorageoperator"
	"hcp.internal/platform/internal/controlplane/openshift/clusterversionoperator"
	"hcp.internal/platform/internal/controlplane/openshift/configoperator"
	"hcp.internal/platform/internal/controlplane/openshift/csisnapshotcontrolleroperator"
	"hcp.internal/platform/internal/controlplane/openshift/dnsoperator"
	"hcp.internal/platform/internal/controlplane/openshift/endpointresolver"
	"hcp.internal/platform/internal/controlplane/openshift/etcd"
	"hcp.internal/platform/internal/controlplane/openshift/featuregategenerator"
	"hcp.internal/platform/internal/controlplane/openshift/ignitionserver"
	"hcp.internal/platform/internal/controlplane/openshift/ignitionserverproxy"
	"hcp.internal/platform/internal/controlplane/openshift/ingressoperator"
	"hcp.internal/platform/internal/controlplane/openshift/konnectivityagent"
	"hcp.internal/platform/internal/controlplane/openshift/kubeapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/kubecontrollermanager"
	"hcp.internal/platform/internal/controlplane/openshift/kubescheduler"
	"hcp.internal/platform/internal/controlplane/openshift/kubevirtcsicontroller"
	"hcp.internal/platform/internal/controlplane/openshift/machineapprover"
	"hcp.internal/platform/internal/controlplane/openshift/metricsproxy"
	"hcp.internal/platform/internal/controlplane/openshift/oauthapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver"
	"hcp.internal/platform/internal/controlplane/openshift/olm"
	"hcp.internal/platform/internal/controlplane/openshift/openshiftapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/openshiftcontrollermanager"
	"hcp.internal/platform/internal/controlplane/openshift/pkioperator"
	"hcp.internal/platform/internal/controlplane/openshift/routecontrollermanager"
	"hcp.internal/platform/internal/controlplane/openshift/router"
	"hcp.internal/platform/internal/controlplane/openshift/storageversionmigrator"
)

// workloads are the components that the control-plane-operator keeps, in the order in which it reconciles them.
func workloads() []*component.WorkloadComponent {
	return []*component.WorkloadComponent{
		pkioperator.NewComponent(),
		etcd.NewComponent(),
		featuregategenerator.NewComponent(),
		kubeapiserver.NewComponent(),
		kubecontrollermanager.NewComponent(),
		kubescheduler.NewComponent(),
		openshiftapiserver.NewComponent(),
		oauthapiserver.NewComponent(),
		clusterautoscaler.NewComponent(),
		clusterversionoperator.NewComponent(),
		openshiftcontrollermanager.NewComponent(),
		oauthserver.NewComponent(),
		routecontrollermanager.NewComponent(),
		clusterpolicycontroller.NewComponent(),
		configoperator.NewComponent(),
		cloudcontrollermanager.NewAWS(),
		cloudcontrollermanager.NewAzure(),
		cloudcontrollermanager.NewKubeVirt(),
		cloudcontrollermanager.NewOpenStack(),
		cloudcontrollermanager.NewPowerVS(),
		cloudcontrollermanager.NewGCP(),
		cloudcredentialoperator.NewComponent(),
		clusterstorageoperator.NewComponent(),
		kubevirtcsicontroller.NewComponent(),
		clusternetworkoperator.NewComponent(),
		clusternodetuningoperator.NewComponent(),
		dnsoperator.NewComponent(),
		machineapprover.NewComponent(),
		awsnodeterminationhandler.NewComponent(),
		ingressoperator.NewComponent(),
		csisnapshotcontrolleroperator.NewComponent(),
		clusterimageregistryoperator.NewComponent(),
		konnectivityagent.NewComponent(),
		ignitionserver.NewComponent(),
		ignitionserverproxy.NewComponent(),
		endpointresolver.NewComponent(),
		metricsproxy.NewComponent(),
		router.NewComponent(),
		storageversionmigrator.NewComponent(),
		olm.NewCatalogOperator(),
		olm.NewOperator(),
		olm.NewPackageServer(),
		olm.NewCollectProfiles(),
		olm.NewRedHatCatalog(),
		olm.NewCommunityCatalog(),
		olm.NewCertifiedCatalog(),
	}
}

// Components are what is parsed once: it takes longer than planning.
var Components = sync.OnceValue(func() []component.Component {
	var list []component.Component
	for _, c := range workloads() {
		list = append(list, c)
	}
	return list
})

// ComponentsOf are the components of one control plane: the shards of etcd come right after it.
func ComponentsOf(hcp *hyperv1.HostedControlPlane) []component.Component {
	var list []component.Component
	for _, c := range Components() {
		list = append(list, c)
		if c.Name() == etcd.Name {
			list = append(list, etcd.Shards(hcp)...)
		}
	}
	return list
}

// ImageTagsOf are the ImageTags of the components that a control plane has.
func ImageTagsOf(ctx component.WorkloadContext) (tags []string, err error) {
	for _, c := range Components() {
		w, ok := c.(*component.WorkloadComponent)
		if !ok {
			continue
		}
		wanted, err := w.Wanted(ctx)
		if err != nil {
			return nil, fmt.Errorf("finding out whether there is a %s: %w", c.Name(), err)
		}
		if wanted {
			tags = append(tags, w.ImageTags()...)
		}
	}
	return slices.DeleteFunc(tags, func(tag string) bool { return strings.Contains(tag, ":") }), nil
}

// ImageTags are the tags of a payload that the components' containers name. What has a colon in it is an image by itself, or a tag of an ImageStream.
var ImageTags = sync.OnceValue(func() (tags []string) {
	for _, c := range workloads() {
		tags = append(tags, c.ImageTags()...)
	}
	return slices.DeleteFunc(tags, func(tag string) bool { return strings.Contains(tag, ":") })
})
