package create

import (
	"errors"
	"fmt"
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// chose says whether one of these flags was given.
func (o Options) chose(flags ...string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return slices.Contains(o.chosen, flag) })
}

// networkOpen says that nobody chose a network: the cluster that exists decides, or the release of a new one.
func (o Options) networkOpen() bool {
	defaults := NewOptions(o.Platform)
	return !o.chose("network-type", "allocate-node-cidrs") && o.NetworkType == defaults.NetworkType && o.AllocateNodeCIDRs == defaults.AllocateNodeCIDRs
}

// settleNetwork decides what is open of the network, once it is known which release a new cluster gets, or which cluster exists.
func (o *Options) settleNetwork() error {
	if !o.networkOpen() {
		return nil // Validate has looked at it
	}
	if o.cloud == nil && isOpenShift(o.ReleaseImage) {
		o.NetworkType, o.AllocateNodeCIDRs = hyperv1.OVNKubernetes, false
	}
	if o.existing != nil {
		// The pods of a cluster that runs depend on it, whatever a new one of its release would get.
		have := o.existing.Spec.Networking
		o.keepsNetwork = have.NetworkType != o.NetworkType
		o.NetworkType, o.AllocateNodeCIDRs = have.NetworkType, have.AllocateNodeCIDRs != nil && *have.AllocateNodeCIDRs == hyperv1.AllocateNodeCIDRsEnabled
	}
	return o.validateNetwork()
}

// validateNetwork checks the flags that are for certain networks.
func (o Options) validateNetwork() error {
	var errs []error
	if o.AllocateNodeCIDRs && o.NetworkType != hyperv1.Other {
		errs = append(errs, fmt.Errorf("--allocate-node-cidrs needs --network-type Other, not %s", o.NetworkType))
	}
	if o.DisableMultiNetwork && o.NetworkType != hyperv1.Other {
		errs = append(errs, fmt.Errorf("--disable-multi-network needs --network-type Other, not %s", o.NetworkType))
	}
	if o.OVNKubernetesMTU != 0 && o.NetworkType != hyperv1.OVNKubernetes {
		errs = append(errs, fmt.Errorf("--ovn-kubernetes-mtu needs --network-type OVNKubernetes, not %s", o.NetworkType))
	}
	return errors.Join(errs...)
}

// keepRanges leaves the ranges of a cluster that exists, which can't change, where nobody named others.
func (o Options) keepRanges(spec *hyperv1.ClusterNetworking) {
	defaults, have := NewOptions(o.Platform), o.existing.Spec.Networking
	if !o.chose("cluster-cidr") && slices.Equal(o.ClusterCIDRs, defaults.ClusterCIDRs) {
		spec.ClusterNetwork = have.ClusterNetwork
	}
	if !o.chose("service-cidr") && slices.Equal(o.ServiceCIDRs, defaults.ServiceCIDRs) {
		spec.ServiceNetwork = have.ServiceNetwork
	}
	if !o.chose("machine-cidr") && slices.Equal(o.MachineCIDRs, defaults.MachineCIDRs) {
		spec.MachineNetwork = have.MachineNetwork
	}
}
