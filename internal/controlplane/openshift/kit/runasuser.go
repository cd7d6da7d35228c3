package kit

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/controlplane/component"
)

// SetRunAsUser tells an operator, by variable RUN_AS_USER, which user the pods that it makes beside the control plane run as. It does nothing where
// the management cluster gives pods a user.
func SetRunAsUser(ctx component.WorkloadContext, c *corev1.Container) {
	if !ctx.Management.SetDefaultSecurityContext {
		return
	}
	SetEnv(c, "RUN_AS_USER", strconv.FormatInt(ctx.Management.User(), 10))
}
