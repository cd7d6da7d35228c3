package release

import "fmt"

// MaxNodeSkew is how many minors nodes may be behind their control plane. A kubelet is supported for three minors.
const MaxNodeSkew = 3

// NodePoolCheck is what CheckNodePoolVersion decides on.
type NodePoolCheck struct {
	Target  string // version to run
	Current string // version that all machines run; empty for a new pool
	// ControlPlane is the newest version that nodes may have.
	ControlPlane string
	// Platform is spec.platform.type.
	Platform string
	// Skip is annotation hypershift.openshift.io/skip-release-image-validation: a version only has to parse.
	Skip bool
}

// CheckNodePoolVersion returns nil when machines of a pool may run Target, or else an error that names the rule and the way out.
func CheckNodePoolVersion(c NodePoolCheck) error {
	target, err := ParseVersion(c.Target)
	if err != nil || c.Skip {
		return err
	}
	controlPlane, err := ParseVersion(c.ControlPlane)
	if err != nil {
		return fmt.Errorf("the version of the control plane: %w", err)
	}
	if target.Kubernetes() != controlPlane.Kubernetes() {
		return fmt.Errorf("release version %s does not go with a control plane of version %s: Kubernetes and OpenShift releases can't be mixed; use a release like the HostedCluster's", target, controlPlane)
	}
	if target.ordinal() > controlPlane.ordinal() {
		return fmt.Errorf("release version %s is newer than the control plane (%s): upgrade the HostedCluster first, or use a %s release", target, controlPlane, controlPlane.MinorString())
	}
	var current *Version
	if c.Current != "" {
		v, err := ParseVersion(c.Current)
		if err != nil {
			return fmt.Errorf("the present version of the machines: %w", err)
		}
		current = &v
	}
	rules := []rule{noMinorDowngrade, notTooOld}
	if !target.Kubernetes() {
		rules = append([]rule{knownMajor, hostableAtAll}, rules...)
	}
	for _, rule := range rules {
		if err := rule(target, current, VersionCheck{Platform: c.Platform}); err != nil {
			return err
		}
	}
	return nil
}

// CheckSkew returns nil when nodes of a version work with a control plane, or else an error that says what is wrong.
func CheckSkew(node, controlPlane string) error {
	n, err := ParseVersion(node)
	if err != nil {
		return err
	}
	cp, err := ParseVersion(controlPlane)
	if err != nil {
		return err
	}
	if n.v.GreaterThan(cp.v) {
		return fmt.Errorf("nodes of version %s are newer than the control plane (%s): upgrade the HostedCluster first", n, cp)
	}
	if behind := cp.ordinal() - n.ordinal(); behind > MaxNodeSkew {
		return fmt.Errorf("nodes of version %s are %d minor versions behind the control plane (%s), and at most %d are supported: upgrade the NodePool", n, behind, cp, MaxNodeSkew)
	}
	return nil
}
