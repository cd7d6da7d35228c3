package awshypervisor

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/test/machinepods"
)

// Pods is a guest whose machines are pods: each boots with its instance's user data, under the name and the ID that the instance has in AWS.
type Pods struct {
	machinepods.Pods
	API *ec2.Client
	// Log tells what went wrong; it is tried again.
	Log func(format string, args ...any)
}

var _ Guest = Pods{}

// Boot implements Guest.
func (p Pods) Boot(ctx context.Context, i types.Instance) {
	id := sdk.ToString(i.InstanceId)
	state, err := p.Look(ctx, id)
	if err == nil && !state.Exists {
		err = p.create(ctx, i)
	}
	if err != nil && ctx.Err() == nil {
		p.Log("booting instance %s: %v", id, err)
	}
}

func (p Pods) create(ctx context.Context, i types.Instance) error {
	data, err := UserData(ctx, p.API, sdk.ToString(i.InstanceId))
	if err != nil {
		return err
	}
	_, err = p.Pods.Boot(ctx, machinepods.Machine{
		Name: sdk.ToString(i.InstanceId), Node: sdk.ToString(i.PrivateDnsName), ProviderID: ProviderID(i), UserData: []byte(data),
	})
	return err
}

// End implements Guest.
func (p Pods) End(ctx context.Context, i types.Instance) {
	if _, err := p.Pods.End(ctx, sdk.ToString(i.InstanceId)); err != nil && ctx.Err() == nil {
		p.Log("ending instance %s: %v", sdk.ToString(i.InstanceId), err)
	}
}
