package iam

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

// role makes a role, or gives the one that is there the right trust.
func (r *run) role(ctx context.Context, a *Account, name string, trust Document, set tags.Set) (string, error) {
	found, err := a.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if fault.Gone(err) {
		made, failed := a.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust.String()), Tags: iamTags(set)})
		if failed == nil {
			r.Log("role %s made", name)
			return aws.ToString(made.Role.Arn), nil
		}
		if !fault.Is(failed, "EntityAlreadyExists") {
			return "", fmt.Errorf("making role %s: %w", name, failed)
		}
		found, err = a.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name}) // an answer was lost
	}
	if err != nil {
		return "", fmt.Errorf("looking for role %s: %w", name, err)
	}
	r.Log("role %s is there", name)
	if !same(aws.ToString(found.Role.AssumeRolePolicyDocument), trust) {
		if _, err := a.iam.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: aws.String(trust.String())}); err != nil {
			return "", fmt.Errorf("changing who may take on role %s: %w", name, err)
		}
		r.Log("role %s trusts whom it should again", name)
	}
	return aws.ToString(found.Role.Arn), nil
}

// inline gives a role a policy of its own.
func (r *run) inline(ctx context.Context, a *Account, role, policy string, want Document) error {
	found, err := a.iam.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &policy})
	if err != nil && !fault.Gone(err) && !fault.Denied(err) {
		return fmt.Errorf("reading policy %s of role %s: %w", policy, role, err)
	}
	if err == nil && same(aws.ToString(found.PolicyDocument), want) {
		return nil
	}
	if _, err := a.iam.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &role, PolicyName: &policy, PolicyDocument: aws.String(want.String())}); err != nil {
		return fmt.Errorf("giving role %s its policy %s: %w", role, policy, err)
	}
	return nil
}

// attach gives a role a managed policy.
func (r *run) attach(ctx context.Context, role, arn string) error {
	out, err := r.cluster.iam.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: &role})
	if err != nil {
		return fmt.Errorf("listing policies of role %s: %w", role, err)
	}
	for _, policy := range out.AttachedPolicies {
		if aws.ToString(policy.PolicyArn) == arn {
			return nil
		}
	}
	if _, err := r.cluster.iam.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &role, PolicyArn: &arn}); err != nil {
		return fmt.Errorf("attaching policy %s to role %s: %w", arn, role, err)
	}
	return nil
}

// ProfileName is the instance profile of a cluster's machines.
func ProfileName(infraID string) string { return infraID + "-worker" }

func workerRole(infraID string) string { return infraID + "-worker-role" }

func rosaWorkerRole(infraID string) string { return infraID + "-worker-ROSA-Worker-Role" }

// worker makes the role of machines and the profile by which they get it.
func (r *run) worker(ctx context.Context, out *Output) error {
	name, profile := workerRole(r.o.InfraID), ProfileName(r.o.InfraID)
	if r.o.UseROSAPolicies {
		name = rosaWorkerRole(r.o.InfraID)
	}
	if _, err := r.role(ctx, r.cluster, name, trustService("ec2.amazonaws.com"), r.tags); err != nil {
		return err
	}
	client := r.cluster.iam
	found, err := client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &profile})
	if err != nil && !fault.Gone(err) {
		return fmt.Errorf("looking for instance profile %s: %w", profile, err)
	}
	if err != nil {
		_, err := client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &profile, Path: aws.String("/"), Tags: iamTags(r.tags)})
		if err != nil && !fault.Is(err, "EntityAlreadyExists") {
			return fmt.Errorf("making instance profile %s: %w", profile, err)
		}
		r.Log("instance profile %s made", profile)
	}
	has := false
	if found != nil && found.InstanceProfile != nil {
		for _, role := range found.InstanceProfile.Roles {
			has = has || aws.ToString(role.RoleName) == name
		}
	}
	if !has {
		_, err := client.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &name})
		if err != nil && !fault.Is(err, "EntityAlreadyExists") {
			return fmt.Errorf("putting role %s into instance profile %s: %w", name, profile, err)
		}
	}
	out.ProfileName = profile
	if r.o.UseROSAPolicies {
		return r.attach(ctx, name, managedPrefix+"ROSAWorkerInstancePolicy")
	}
	return r.inline(ctx, r.cluster, name, r.o.InfraID+"-worker-policy", workerPolicy())
}
