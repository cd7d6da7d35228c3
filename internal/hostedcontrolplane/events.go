package hostedcontrolplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/events"
)

// eventRules are what is told of conditions. Most begin as False while a control plane starts, which is no news.
var eventRules = []events.Rule{
	{Condition: hyperv1.ValidHostedControlPlaneConfiguration, Status: metav1.ConditionFalse, Warning: true, Action: "Validate", Over: hyperv1.ValidHostedControlPlaneConfiguration},
	{Condition: hyperv1.ValidReleaseInfo, Status: metav1.ConditionFalse, Warning: true, Action: "Validate", Over: hyperv1.ValidReleaseInfo},
	lost(hyperv1.InfrastructureReady), lost(hyperv1.EtcdAvailable), lost(hyperv1.KubeAPIServerAvailable), lost(hyperv1.HostedControlPlaneAvailable),
	{Condition: hyperv1.HostedControlPlaneDegraded, Status: metav1.ConditionTrue, Reason: certificatesReason, Warning: true, Action: "Renew"},
}

func lost(condition string) events.Rule {
	return events.Rule{Condition: condition, Status: metav1.ConditionFalse, Warning: true, Action: "Serve", Lost: true, Over: condition}
}
