package create

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// NodePoolOptions describes a NodePool. NewNodePoolOptions has the defaults of a platform.
type NodePoolOptions struct {
	Platform     hyperv1.PlatformType
	Name         string
	Namespace    string
	ClusterName  string
	Replicas     int32
	ReleaseImage string // empty: that of the cluster
	Arch         string
	UpgradeType  hyperv1.UpgradeType
	AutoRepair   bool
	DrainTimeout time.Duration // 0: no limit
	DetachVolume time.Duration // 0: no limit

	machines poolPlatform // what the platform adds; nil: nothing
}

// NewNodePoolOptions returns the defaults of a platform.
func NewNodePoolOptions(platform hyperv1.PlatformType) NodePoolOptions {
	o := NodePoolOptions{
		Platform:    platform,
		Namespace:   DefaultNamespace,
		Replicas:    2,
		UpgradeType: hyperv1.UpgradeTypeReplace,
	}
	p := platformOf(platform)
	o.Arch = architectures(platform)[0]
	if p.inPlace {
		o.UpgradeType = hyperv1.UpgradeTypeInPlace // there is nobody who could make a new machine
	}
	if p.pool != nil {
		o.machines = p.pool()
	}
	return o
}

// architectures are those of the machines that a platform has, the default first.
func architectures(platform hyperv1.PlatformType) []string {
	switch platform {
	case hyperv1.PowerVSPlatform:
		return []string{hyperv1.ArchitecturePPC64LE}
	case hyperv1.OpenStackPlatform:
		return []string{hyperv1.ArchitectureAMD64}
	case hyperv1.KubevirtPlatform:
		return []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureS390X}
	case hyperv1.AgentPlatform:
		return []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64, hyperv1.ArchitecturePPC64LE}
	}
	return []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64}
}

// validate checks what a cluster and a pool of their own have in common.
func (o NodePoolOptions) validate() error {
	var errs []error
	arches := architectures(o.Platform)
	if !slices.Contains(arches, o.Arch) {
		errs = append(errs, fmt.Errorf("--arch %q: must be one of %v", o.Arch, arches))
	}
	types := []hyperv1.UpgradeType{hyperv1.UpgradeTypeReplace, hyperv1.UpgradeTypeInPlace}
	if !slices.Contains(types, o.UpgradeType) {
		errs = append(errs, fmt.Errorf("--node-upgrade-type %q: must be one of %v", o.UpgradeType, types))
	}
	if o.DrainTimeout < 0 || o.DetachVolume < 0 {
		errs = append(errs, errors.New("--node-drain-timeout and --node-volume-detach-timeout must not be negative"))
	}
	return errors.Join(errs...)
}

// validateAlone checks a pool of its own.
func (o NodePoolOptions) validateAlone() error {
	errs := []error{label("--name", o.Name), label("--cluster-name", o.ClusterName), label("--namespace", o.Namespace), o.validate()}
	if o.Replicas < 0 {
		errs = append(errs, fmt.Errorf("--replicas %d: must not be negative", o.Replicas))
	}
	return errors.Join(errs...)
}

// leftOpen are the flags whose values are taken from the HostedCluster when they aren't given.
func (o NodePoolOptions) leftOpen() []string {
	var flags []string
	if o.ReleaseImage == "" {
		flags = append(flags, "--release-image")
	}
	if o.machines != nil {
		flags = append(flags, o.machines.leftOpen()...)
	}
	return flags
}

// nodePoolOf is NodePool with what the platform adds.
func nodePoolOf(o NodePoolOptions) *hyperv1.NodePool {
	np := NodePool(o)
	if o.machines != nil {
		o.machines.fill(np)
	}
	return np
}

// NodePool is the NodePool that o describes.
func NodePool(o NodePoolOptions) *hyperv1.NodePool {
	np := &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace},
		Spec: hyperv1.NodePoolSpec{
			ClusterName: o.ClusterName,
			Release:     hyperv1.Release{Image: o.ReleaseImage},
			Platform:    hyperv1.NodePoolPlatform{Type: o.Platform},
			Replicas:    ptr.To(o.Replicas),
			Arch:        o.Arch,
			Management:  hyperv1.NodePoolManagement{UpgradeType: o.UpgradeType, AutoRepair: o.AutoRepair},
		},
	}
	if o.DrainTimeout > 0 {
		np.Spec.NodeDrainTimeout = &metav1.Duration{Duration: o.DrainTimeout}
	}
	if o.DetachVolume > 0 {
		np.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: o.DetachVolume}
	}
	return np
}
