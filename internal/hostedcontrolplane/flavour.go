package hostedcontrolplane

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/release"
)

// flavour says whose components a release has.
type flavour int

const (
	// undecided: the release has not been read yet. What the others differ in waits for that.
	undecided flavour = iota
	kubernetes
	openShift
)

func flavourOf(r *release.Release) flavour {
	switch {
	case r == nil:
		return undecided
	case r.Kubernetes:
		return kubernetes
	}
	return openShift
}

// knownFlavour is that of the release that the status tells of, so that a pass need not wait for a registry to know what it has known before. It
// stays the same for the life of a control plane: releases of the two don't follow each other.
func knownFlavour(hcp *hyperv1.HostedControlPlane) flavour {
	v, err := release.ParseVersion(hcp.Status.ControlPlaneVersion.Desired.Version)
	switch {
	case err != nil:
		return undecided
	case v.Kubernetes():
		return kubernetes
	}
	return openShift
}
