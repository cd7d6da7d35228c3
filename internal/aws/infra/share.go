package infra

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ram"
	"github.com/aws/aws-sdk-go-v2/service/ram/types"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/tags"
)

// sharedWait is between looks for subnets that another account shares: minutes are usual.
const sharedWait = 30 * time.Second

// share lets the cluster's account use the subnets of the VPC's account.
func (r *run) share(ctx context.Context, made *parts) error {
	if err := r.accounts(ctx); err != nil {
		return err
	}
	ids := append(slices.Clone(made.private), made.public...)
	mine, err := r.net.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: ids})
	if err != nil {
		return fmt.Errorf("reading the subnets to share: %w", err)
	}
	var arns []string
	for _, subnet := range mine.Subnets {
		arns = append(arns, aws.ToString(subnet.SubnetArn))
	}
	name := r.o.InfraID + "-share"
	_, err = ensure(ctx, r, "resource share "+name, func() (*types.ResourceShare, error) {
		list, err := shares(ctx, r.a.Owner, r.o.InfraID)
		return first(list), err
	}, func() (*types.ResourceShare, error) {
		out, err := r.a.Owner.ram.CreateResourceShare(ctx, &ram.CreateResourceShareInput{
			Name: &name, Principals: []string{r.output.ClusterAccountID}, ResourceArns: arns,
			Tags: tags.List(r.tags, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }),
		})
		if err != nil {
			return nil, err
		}
		return out.ResourceShare, nil
	})
	if err != nil {
		return err
	}
	return r.tagShared(ctx, ids, mine.Subnets)
}

// shares are the cluster's that aren't on their way out.
func shares(ctx context.Context, a *Account, infraID string) ([]types.ResourceShare, error) {
	var list []types.ResourceShare
	var token *string
	for range maxPages {
		out, err := a.ram.GetResourceShares(ctx, &ram.GetResourceSharesInput{
			ResourceOwner: types.ResourceOwnerSelf, NextToken: token,
			TagFilters: []types.TagFilter{{TagKey: aws.String(tags.Cluster(infraID)), TagValues: []string{tags.Owned}}}})
		if err != nil {
			return nil, fmt.Errorf("listing resource shares: %w", err)
		}
		for _, share := range out.ResourceShares {
			if share.Status != types.ResourceShareStatusDeleted && share.Status != types.ResourceShareStatusDeleting {
				list = append(list, share)
			}
		}
		if token = out.NextToken; aws.ToString(token) == "" {
			return list, nil
		}
	}
	return list, nil
}

// tagShared waits until the cluster's account sees the subnets, and tags them there: tags don't cross accounts.
func (r *run) tagShared(ctx context.Context, ids []string, mine []ec2types.Subnet) error {
	theirs := map[string]tags.Set{}
	if err := r.visible(ctx, "the shared subnets", visibleTries, sharedWait, func() (bool, error) {
		out, err := r.a.Cluster.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: ids})
		if err != nil {
			return false, err
		}
		for _, subnet := range out.Subnets {
			theirs[aws.ToString(subnet.SubnetId)] = ec2values.Set(subnet.Tags)
		}
		return len(out.Subnets) == len(ids), nil
	}); err != nil {
		return err
	}
	for _, subnet := range mine {
		id := aws.ToString(subnet.SubnetId)
		missing := tags.Missing(theirs[id], ec2values.Set(subnet.Tags))
		if len(missing) == 0 {
			continue
		}
		if _, err := r.a.Cluster.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2values.Tags(missing)}); err != nil {
			return fmt.Errorf("tagging subnet %s in the cluster's account: %w", id, err)
		}
	}
	return nil
}
