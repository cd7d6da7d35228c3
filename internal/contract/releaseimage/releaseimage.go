// Package releaseimage says which of the two releases that a HostedControlPlane names is meant for what. The hypershift-operator deploys
// control-plane-operators by it, and a control-plane-operator leaves alone what another release is to reconcile: were they of different minds,
// nobody would reconcile a control plane, or two would.
package releaseimage

import (
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// EnvOperateOn is the environment variable that names the only release that an operator of a control plane handles: its own.
const EnvOperateOn = "OPERATE_ON_RELEASE_IMAGE"

// ControlPlane is the release of what runs on the management side: spec.controlPlaneReleaseImage, or that of the hosted cluster when it is
// absent or empty.
func ControlPlane(spec *hyperv1.HostedControlPlaneSpec) string {
	if image := spec.ControlPlaneReleaseImage; image != nil && *image != "" {
		return *image
	}
	return spec.ReleaseImage
}
