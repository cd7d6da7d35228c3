package cloud

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release/bootimages"
)

// Images are what machines of a pool can boot from by its release. field is where the user can name an image instead, for the error.
func Images(in machine.Input, field string) (*bootimages.Images, error) {
	r := in.Release
	arch := in.NodePool.Spec.Arch
	if arch == "" {
		arch = hyperv1.ArchitectureAMD64
	}
	if r == nil {
		return nil, fmt.Errorf("no release is known whose image machines could boot: set %s", field)
	}
	images, err := r.BootImages.For(in.NodePool.Spec.OSImageStream.Name, arch)
	if err != nil {
		return nil, fmt.Errorf("release %s (%s) can't say what machines boot: %w; or set %s", r.Version, r.Image, err, field)
	}
	return images, nil
}

// Missing says that a release has no image for a platform.
func Missing(in machine.Input, what, field string) error {
	return fmt.Errorf("release %s (%s) has no %s for %s: set %s", in.Release.Version, in.Release.Image, what, in.NodePool.Spec.Arch, field)
}

// ImageCondition is ValidPlatformImage of a pool: False with err, or else True with the message.
func ImageCondition(message string, err error) hyperv1.NodePoolCondition {
	c := hyperv1.NodePoolCondition{Type: hyperv1.NodePoolValidPlatformImageType, Status: corev1.ConditionTrue, Reason: hyperv1.AsExpectedReason, Message: message}
	if err != nil {
		c.Status, c.Reason, c.Severity, c.Message = corev1.ConditionFalse, hyperv1.NodePoolValidationFailedReason, "Error", err.Error()
	}
	return c
}
