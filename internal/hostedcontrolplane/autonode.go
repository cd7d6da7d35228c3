package hostedcontrolplane

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/karpenter"
	"hcp.internal/platform/internal/kube/conditions"
)

// autoNodeEnabled says how far Karpenter is; nil: nobody asks for it, and nothing of it is left. Payloads of OpenShift have an operator that tells.
func autoNodeEnabled(obs Observed) *metav1.Condition {
	const kind = hyperv1.AutoNodeEnabled
	asked := karpenter.Asked(obs.HCP.Spec.AutoNode)
	left := slices.ContainsFunc(obs.Deployments, func(d appsv1.Deployment) bool { return d.Name == karpenter.Name })
	var c metav1.Condition
	switch {
	case obs.Flavour == openShift, !asked && !left:
		return nil
	case obs.Release == nil: // not looked at in this pass
		return conditions.Get(obs.HCP.Status.Conditions, kind)
	case !asked:
		c = conditions.False(kind, hyperv1.AutoNodeProgressingReason, retiring(obs))
	case karpenter.Problem(obs.HCP, obs.Release) != "":
		c = conditions.False(kind, hyperv1.AutoNodeProgressingReason, karpenter.Problem(obs.HCP, obs.Release))
	default:
		c = karpenterRollout(obs)
	}
	return &c
}

// retiring says what is left of Karpenter, whose machines go before it does.
func retiring(obs Observed) string {
	switch left := ptr.Deref(obs.HCP.Status.AutoNode.NodeClaimCount, 0); left {
	case 0:
		return "Karpenter is being removed"
	case 1:
		return "Karpenter is removed once its last machine is drained and gone; `kubectl get nodeclaims` in the hosted cluster shows it"
	default:
		return fmt.Sprintf("Karpenter is removed once its %d machines are drained and gone; `kubectl get nodeclaims` in the hosted cluster shows them", left)
	}
}

// karpenterRollout is what the component's report says.
func karpenterRollout(obs Observed) metav1.Condition {
	const kind = hyperv1.AutoNodeEnabled
	i := slices.IndexFunc(obs.Components, func(c hyperv1.ControlPlaneComponent) bool { return c.Name == karpenter.Name })
	if i < 0 {
		return conditions.False(kind, hyperv1.AutoNodeProgressingReason, "Karpenter has not been deployed yet")
	}
	for _, t := range []string{hyperv1.ControlPlaneComponentRolloutComplete, hyperv1.ControlPlaneComponentAvailable} {
		if c := conditions.Get(obs.Components[i].Status.Conditions, t); c == nil || c.Status != metav1.ConditionTrue {
			message := "Karpenter is being rolled out"
			if c != nil && c.Message != "" {
				message += ": " + c.Message
			}
			return conditions.False(kind, hyperv1.AutoNodeProgressingReason, message)
		}
	}
	return asExpected(kind)
}
