package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/cluster"
	"hcp.internal/platform/internal/platform/machine"
)

// fromControlPlane are the conditions that the control-plane-operator finds out, Unknown until it has.
var fromControlPlane = []string{hyperv1.ValidAWSIdentityProvider, hyperv1.AWSDefaultSecurityGroupCreated, hyperv1.ValidAWSKMSConfig}

// Observe implements platform.Observer.
func (Platform) Observe(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	if access := specOf(hc).EndpointAccess; access == "" || access == hyperv1.Public {
		return nil, nil
	}
	return endpointServices(ctx, reader, hcpNamespace)
}

func endpointServices(ctx context.Context, reader client.Reader, namespace string) ([]client.Object, error) {
	list := &hyperv1.AWSEndpointServiceList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing the AWSEndpointServices of namespace %s: %w", namespace, err)
	}
	var objects []client.Object
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(hyperv1.GroupVersion.WithKind("AWSEndpointService"))
		objects = append(objects, &list.Items[i])
	}
	slices.SortFunc(objects, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return objects, nil
}

// Conditions implements platform.ConditionReporter.
func (Platform) Conditions(in cluster.Input) (set []metav1.Condition, absent []string) {
	for _, t := range fromControlPlane {
		set = append(set, copied(in.HostedControlPlane, t))
	}
	for _, t := range []string{hyperv1.AWSEndpointAvailable, hyperv1.AWSEndpointServiceAvailable} {
		set = append(set, aggregate(in.Objects, t))
	}
	if hc, hcp := in.HostedCluster, in.HostedControlPlane; !in.Documents && hcp != nil && hcp.Status.KubeConfig != nil && !bringsKey(hc) {
		set = append(set, conditions.False(hyperv1.ValidOIDCConfiguration, hyperv1.OIDCConfigurationInvalidReason, "This operator has no bucket to publish OIDC documents in: "+
			"install it with --oidc-storage-provider-s3-bucket-name, or publish the documents and name the key of the issuer in spec.serviceAccountSigningKey"))
	}
	return set, nil
}

// DeletionConditions implements platform.DeletionReporter. Whether AWS takes the cluster's tokens may change while it goes: its provider may have been deleted
// first.
func (Platform) DeletionConditions(hcp *hyperv1.HostedControlPlane) []metav1.Condition {
	list := []metav1.Condition{copied(hcp, hyperv1.ValidAWSIdentityProvider)}
	if conditions.Get(hcp.Status.Conditions, hyperv1.AWSDefaultSecurityGroupDeleted) != nil {
		list = append(list, copied(hcp, hyperv1.AWSDefaultSecurityGroupDeleted))
	}
	return list
}

// bringsKey tells that tokens are signed by a key of the user's, who publishes its public half.
func bringsKey(hc *hyperv1.HostedCluster) bool {
	return hc.Spec.ServiceAccountSigningKey != nil && hc.Spec.ServiceAccountSigningKey.Name != ""
}

func copied(hcp *hyperv1.HostedControlPlane, t string) metav1.Condition {
	if hcp == nil {
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "The hosted control plane is not found")
	}
	if c := conditions.Get(hcp.Status.Conditions, t); c != nil {
		return conditions.New(t, c.Status, c.Reason, c.Message)
	}
	return conditions.Unknown(t, hyperv1.StatusUnknownReason, "Condition not found in the HCP")
}

// aggregate sums a condition of all AWSEndpointServices up: one that is False makes it False.
func aggregate(services []client.Object, t string) metav1.Condition {
	var wrong, unknown []string
	for _, obj := range services {
		service, ok := obj.(*hyperv1.AWSEndpointService)
		if !ok {
			continue
		}
		switch c := conditions.Get(service.Status.Conditions, t); {
		case c == nil:
			unknown = append(unknown, service.Name)
		case c.Status == metav1.ConditionFalse:
			wrong = append(wrong, c.Message)
		}
	}
	switch {
	case len(wrong) > 0:
		return conditions.False(t, hyperv1.AWSErrorReason, strings.Join(wrong, "; "))
	case len(services) == 0:
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "There are no AWSEndpointServices")
	case len(unknown) > 0:
		return conditions.Unknown(t, hyperv1.StatusUnknownReason, "Nothing is known yet of "+strings.Join(unknown, ", "))
	}
	return conditions.True(t, hyperv1.AWSSuccessReason, hyperv1.AllIsWellMessage)
}

// waitingForGroup is what machines wait for.
const waitingForGroup = "the AWS default security group of workers, which the control-plane-operator makes"

// PoolConditions implements platform.PoolReporter.
func (Platform) PoolConditions(in machine.Input) (set []hyperv1.NodePoolCondition, absent []string) {
	add := func(t string, status corev1.ConditionStatus, reason, message string) {
		set = append(set, hyperv1.NodePoolCondition{Type: t, Status: status, Reason: reason, Message: message, ObservedGeneration: in.NodePool.Generation})
	}
	if in.NodePool.Spec.Platform.AWS == nil {
		return nil, nil // its template says so
	}
	if poolSpec(in.NodePool).AMI != "" {
		absent = append(absent, hyperv1.NodePoolValidPlatformImageType)
	} else if ami, err := imageOf(in); err != nil {
		add(hyperv1.NodePoolValidPlatformImageType, corev1.ConditionFalse, hyperv1.NodePoolValidationFailedReason, err.Error())
	} else {
		add(hyperv1.NodePoolValidPlatformImageType, corev1.ConditionTrue, hyperv1.AsExpectedReason, fmt.Sprintf("Bootstrap AMI is %q", ami))
	}
	if defaultSecurityGroup(in.HostedCluster) == "" {
		add(hyperv1.NodePoolAWSSecurityGroupAvailableConditionType, corev1.ConditionFalse, hyperv1.NodePoolDefaultSGNotReadyReason, "Waiting for "+waitingForGroup)
	} else {
		add(hyperv1.NodePoolAWSSecurityGroupAvailableConditionType, corev1.ConditionTrue, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	}
	if tags := tagsOf(in.HostedCluster, in.NodePool); len(tags.blocked) > 0 {
		add(hyperv1.NodePoolAWSResourceTagConflictConditionType, corev1.ConditionTrue, hyperv1.NodePoolTagConflictDetectedReason, tags.message())
	} else {
		add(hyperv1.NodePoolAWSResourceTagConflictConditionType, corev1.ConditionFalse, hyperv1.NodePoolNoTagConflictReason, tags.message())
	}
	return set, absent
}

// credentialsInvalid tells that AWS doesn't take the cluster's tokens. What nobody has looked at yet is not known to be wrong, and documents that aren't
// published don't matter while AWS takes the tokens all the same.
func credentialsInvalid(hc *hyperv1.HostedCluster) bool {
	list := hc.Status.Conditions
	return conditions.IsFalse(list, hyperv1.ValidAWSIdentityProvider) ||
		conditions.IsFalse(list, hyperv1.ValidOIDCConfiguration) && !conditions.IsTrue(list, hyperv1.ValidAWSIdentityProvider)
}

// credentialsValid tells that AWS takes them. Who published the documents doesn't matter: nobody says ValidOIDCConfiguration where the user did.
func credentialsValid(hc *hyperv1.HostedCluster) bool {
	return conditions.IsTrue(hc.Status.Conditions, hyperv1.ValidAWSIdentityProvider)
}

// abandonedAfter is how long something that is being deleted waits for credentials of which nothing is known, and an AWSEndpointService for the
// control-plane-operator.
const abandonedAfter = 10 * time.Minute

// orphaned tells that nobody will end the instance of a machine that is being deleted. The finalizer is all that holds the instance, so it goes at once
// only when the credentials are known to be wrong.
func orphaned(hc *hyperv1.HostedCluster, obj client.Object, now time.Time) bool {
	since := obj.GetDeletionTimestamp()
	if since == nil || len(obj.GetFinalizers()) == 0 || credentialsValid(hc) {
		return false
	}
	return credentialsInvalid(hc) || now.Sub(since.Time) >= abandonedAfter
}

// DeleteOrphanedMachines implements platform.OrphanDeleter: without valid credentials the provider can't end an instance, and its finalizer would
// hold up the deletion for ever. Only machines that are being deleted already are touched.
func (Platform) DeleteOrphanedMachines(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, hcpNamespace string) error {
	if credentialsValid(hc) {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind("AWSMachineList"))
	if err := c.List(ctx, list, client.InNamespace(hcpNamespace)); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("listing AWSMachines in %s: %w", hcpNamespace, err)
	}
	var errs []error
	for i := range list.Items {
		obj := &list.Items[i]
		if !orphaned(hc, obj, time.Now()) {
			continue
		}
		body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"finalizers":null}}`, obj.GetResourceVersion())
		if err := c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("removing the finalizers of AWSMachine %s/%s: %w", hcpNamespace, obj.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// Remaining implements platform.Dismantler: VPC endpoints and what they lead to.
func (Platform) Remaining(ctx context.Context, reader client.Reader, _ *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	return endpointServices(ctx, reader, hcpNamespace)
}

// Abandoned implements platform.Dismantler.
func (Platform) Abandoned(hc *hyperv1.HostedCluster, obj client.Object, now time.Time) []string {
	if since := obj.GetDeletionTimestamp(); !credentialsInvalid(hc) && (since == nil || now.Sub(since.Time) < abandonedAfter) {
		return nil
	}
	if slices.Contains(obj.GetFinalizers(), hyperv1.AWSEndpointServiceCPOFinalizer) {
		return []string{hyperv1.AWSEndpointServiceCPOFinalizer}
	}
	return nil
}
