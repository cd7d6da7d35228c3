//go:build aws

package awsmachines

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/test/awshypervisor"
)

// paper is a guest of which there is nothing but its Node.
type paper struct{ workload client.Client }

// Boot implements awshypervisor.Guest.
func (p paper) Boot(ctx context.Context, i types.Instance) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: sdk.ToString(i.PrivateDnsName)}, Spec: corev1.NodeSpec{ProviderID: awshypervisor.ProviderID(i)}}
	if p.workload.Create(ctx, node) != nil {
		return // it is there
	}
	node.Status = corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"}, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse}}}
	_ = p.workload.Status().Update(ctx, node)
}

// End marks the Node as kube-controller-manager does when nothing is heard of it. Cluster API removes that of a machine that it deletes.
func (p paper) End(ctx context.Context, i types.Instance) {
	node := &corev1.Node{}
	if p.workload.Get(ctx, client.ObjectKey{Name: sdk.ToString(i.PrivateDnsName)}, node) != nil || node.Spec.ProviderID != awshypervisor.ProviderID(i) {
		return
	}
	for c := range node.Status.Conditions {
		if ready := &node.Status.Conditions[c]; ready.Type == corev1.NodeReady && ready.Status == corev1.ConditionTrue {
			ready.Status, ready.LastTransitionTime = corev1.ConditionUnknown, metav1.Now()
			_ = p.workload.Status().Update(ctx, node)
		}
	}
}
