//go:build aws

package awsmachines

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lookEvery is how often a hypervisor looks for instances.
const lookEvery = 300 * time.Millisecond

// guest is what boots instances.
type guest interface {
	// boot starts a machine for an instance that runs. It is called again and again while the instance runs.
	boot(ctx context.Context, i types.Instance)
	// end stops it.
	end(ctx context.Context, i types.Instance)
}

// hypervisor does with instances what AWS would: those that run are booted, those that are terminated end. What it calls isn't recorded as anybody's.
func hypervisor(ctx context.Context, api *ec2.Client, g guest) {
	for ctx.Err() == nil {
		for _, i := range instances(ctx, api) {
			switch i.State.Name {
			case types.InstanceStateNameRunning:
				g.boot(ctx, i)
			case types.InstanceStateNameTerminated, types.InstanceStateNameStopped, types.InstanceStateNameShuttingDown:
				g.end(ctx, i)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// instances are all that AWS tells of, also terminated ones; none when it can't be asked.
func instances(ctx context.Context, api *ec2.Client) []types.Instance {
	out, err := api.DescribeInstances(ctx, &ec2.DescribeInstancesInput{})
	if err != nil {
		return nil
	}
	var list []types.Instance
	for _, r := range out.Reservations {
		list = append(list, r.Instances...)
	}
	slices.SortFunc(list, func(a, b types.Instance) int {
		return strings.Compare(sdk.ToString(a.InstanceId), sdk.ToString(b.InstanceId))
	})
	return list
}

// providerID is as the provider writes it.
func providerID(i types.Instance) string {
	return "aws:///" + sdk.ToString(i.Placement.AvailabilityZone) + "/" + sdk.ToString(i.InstanceId)
}

// userData is what an instance was started with.
func userData(ctx context.Context, api *ec2.Client, id string) (string, error) {
	out, err := api.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: sdk.String(id), Attribute: types.InstanceAttributeNameUserData})
	if err != nil || out.UserData == nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(sdk.ToString(out.UserData.Value))
	return string(raw), err
}

// paper is a guest of which there is nothing but its Node.
type paper struct{ workload client.Client }

func (p paper) boot(ctx context.Context, i types.Instance) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: sdk.ToString(i.PrivateDnsName)}, Spec: corev1.NodeSpec{ProviderID: providerID(i)}}
	if p.workload.Create(ctx, node) != nil {
		return // it is there
	}
	node.Status = corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"}, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse}}}
	_ = p.workload.Status().Update(ctx, node)
}

// end marks the Node as kube-controller-manager does when nothing is heard of it. Cluster API removes that of a machine that it deletes.
func (p paper) end(ctx context.Context, i types.Instance) {
	node := &corev1.Node{}
	if p.workload.Get(ctx, client.ObjectKey{Name: sdk.ToString(i.PrivateDnsName)}, node) != nil || node.Spec.ProviderID != providerID(i) {
		return
	}
	for c := range node.Status.Conditions {
		if ready := &node.Status.Conditions[c]; ready.Type == corev1.NodeReady && ready.Status == corev1.ConditionTrue {
			ready.Status, ready.LastTransitionTime = corev1.ConditionUnknown, metav1.Now()
			_ = p.workload.Status().Update(ctx, node)
		}
	}
}
