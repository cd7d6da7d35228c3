// Package awshypervisor boots the instances of an emulated AWS: what the provider of Cluster API makes there has a state and user data, and nothing runs.
package awshypervisor

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// lookEvery is how often a hypervisor looks for instances.
const lookEvery = 300 * time.Millisecond

// Guest is what boots instances.
type Guest interface {
	// Boot starts a machine for an instance that runs. It is called again and again while the instance runs.
	Boot(ctx context.Context, i types.Instance)
	// End stops it. It is called again and again while AWS still tells of the instance.
	End(ctx context.Context, i types.Instance)
}

// Run does with instances what AWS would, until ctx ends: those that run are booted, those that are terminated or stopped end.
func Run(ctx context.Context, api *ec2.Client, g Guest) {
	for ctx.Err() == nil {
		for _, i := range Instances(ctx, api) {
			switch i.State.Name {
			case types.InstanceStateNameRunning:
				g.Boot(ctx, i)
			case types.InstanceStateNameTerminated, types.InstanceStateNameStopped, types.InstanceStateNameShuttingDown:
				g.End(ctx, i)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// Instances are all that AWS tells of, also terminated ones, by their IDs; none when it can't be asked.
func Instances(ctx context.Context, api *ec2.Client) []types.Instance {
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

// ProviderID is as the provider writes it.
func ProviderID(i types.Instance) string {
	return "aws:///" + sdk.ToString(i.Placement.AvailabilityZone) + "/" + sdk.ToString(i.InstanceId)
}

// UserData is what an instance was started with.
func UserData(ctx context.Context, api *ec2.Client, id string) (string, error) {
	out, err := api.DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: sdk.String(id), Attribute: types.InstanceAttributeNameUserData})
	if err != nil || out.UserData == nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(sdk.ToString(out.UserData.Value))
	if err != nil {
		return "", fmt.Errorf("reading the user data of instance %s: %w", id, err)
	}
	return string(raw), nil
}
