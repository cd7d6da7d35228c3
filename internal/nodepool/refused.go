package nodepool

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// retryRefused is when a write that was refused is tried again without a change of the NodePool: other rules may hold after an upgrade.
const retryRefused = time.Minute

// causes say what of a user a field of an object of ours comes from, by how the field begins.
var causes = []struct{ field, from string }{
	{"metadata.name", "the name of the NodePool"},
	{"spec.template.metadata.labels", "spec.nodeLabels"},
	{"spec.template.metadata.annotations", "spec.taints"},
	{"spec.template.spec.version", "the version of spec.release.image"},
	{"spec.template.spec.deletion", "spec.nodeDrainTimeout and spec.nodeVolumeDetachTimeout"},
	{"spec.rollout", "spec.management.replace"},
	{"spec.replicas", "spec.replicas and spec.autoScaling"},
	{"spec.checks.nodeStartupTimeoutSeconds", "annotation " + hyperv1.MachineHealthCheckNodeStartupTimeoutAnnotation + " of the NodePool or its HostedCluster"},
	{"spec.checks", "annotation " + hyperv1.MachineHealthCheckTimeoutAnnotation + " of the NodePool or its HostedCluster"},
	{"spec.remediation", "annotation " + hyperv1.MachineHealthCheckMaxUnhealthyAnnotation + " of the NodePool or its HostedCluster"},
}

// refused is what to tell of a write that was refused because of what was to be written, nil when err is anything else. Trying again would not
// help: somebody has to change what the object is made from.
func refused(err error) *hyperv1.NodePoolCondition {
	var status apierrors.APIStatus
	if err == nil || !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	details := status.Status().Details
	problems := make([]string, 0, len(details.Causes))
	for _, c := range details.Causes {
		problem := fmt.Sprintf("%s: %s", c.Field, c.Message)
		for _, known := range causes {
			if strings.HasPrefix(c.Field, known.field) {
				problem += fmt.Sprintf(" (change %s)", known.from)
				break
			}
		}
		problems = append(problems, problem)
	}
	condition := bad(hyperv1.NodePoolValidMachineTemplateConditionType, ReasonInvalidMachineTemplate, "")
	if details.Kind == "MachineHealthCheck" {
		condition = bad(hyperv1.NodePoolAutorepairEnabledConditionType, hyperv1.NodePoolValidationFailedReason, "")
	}
	condition.Message = fmt.Sprintf("%s %s can't be written: %s", details.Kind, details.Name, strings.Join(problems, "; "))
	condition.Severity = severityError
	return &condition
}
