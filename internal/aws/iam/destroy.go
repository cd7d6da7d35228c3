package iam

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"hcp.internal/platform/internal/aws/fault"
)

// DestroyOptions say whose roles to remove.
type DestroyOptions struct {
	InfraID                      string
	PrivateZonesInClusterAccount bool
}

const (
	maxPages = 1000
	// A role that somebody is just changing refuses to go for a while.
	conflictTries = 18
	conflictWait  = 10 * time.Second
)

// Destroy removes provider, roles and profile. All are tried; what is gone already is fine.
func Destroy(ctx context.Context, o DestroyOptions, cluster, owner *Account, s Surroundings) error {
	if o.InfraID == "" {
		return errors.New("--infra-id is required")
	}
	r := newRun(Options{InfraID: o.InfraID}, cluster, owner, s)
	errs := []error{r.removeProvider(ctx)}
	shared, err := r.removeRole(ctx, cluster, o.InfraID+"-shared-role")
	errs = append(errs, err)
	if !shared {
		for _, x := range roles {
			_, err := r.removeRole(ctx, cluster, o.InfraID+"-"+x.suffix)
			errs = append(errs, err)
		}
	}
	errs = append(errs, r.removeProfile(ctx))
	for _, name := range []string{workerRole(o.InfraID), rosaWorkerRole(o.InfraID)} {
		_, err := r.removeRole(ctx, cluster, name)
		errs = append(errs, err)
	}
	if owner != nil {
		// The first two are ours; the others are names that the published tool looks for.
		for _, suffix := range []string{"shared-vpc-route53", "shared-vpc-endpoint", "shared-vpc-ingress", "shared-vpc-control-plane"} {
			for _, account := range []*Account{owner, cluster} {
				_, err := r.removeRole(ctx, account, o.InfraID+"-"+suffix)
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// removeProvider removes the provider whose URL ends in the cluster's identifier.
func (r *run) removeProvider(ctx context.Context) error {
	out, err := r.cluster.iam.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return fmt.Errorf("listing OIDC providers: %w", fault.Explain(err))
	}
	for _, provider := range out.OpenIDConnectProviderList {
		arn := aws.ToString(provider.Arn)
		if arn[strings.LastIndex(arn, "/")+1:] != r.o.InfraID {
			continue
		}
		if _, err := r.cluster.iam.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: &arn}); err != nil && !fault.Gone(err) {
			return fmt.Errorf("OIDC provider %s: %w", arn, fault.Explain(err))
		}
		r.Log("OIDC provider %s deleted", arn)
	}
	return nil
}

// removeRole removes a role with its policies, and tells whether it was there.
func (r *run) removeRole(ctx context.Context, a *Account, name string) (bool, error) {
	_, err := a.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if fault.Gone(err) {
		return false, nil
	}
	for try := 1; err == nil; try++ {
		if err = r.strip(ctx, a, name); err == nil {
			_, err = a.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &name})
		}
		if err == nil || fault.Gone(err) {
			r.Log("role %s deleted", name)
			return true, nil
		}
		if fault.Is(err, "DeleteConflict", "ConcurrentModification") && try < conflictTries {
			err = r.Wait(ctx, conflictWait)
		}
	}
	return true, fmt.Errorf("role %s: %w", name, fault.Explain(err))
}

// strip takes all policies off a role, whoever gave them to it: it can't be deleted before.
func (r *run) strip(ctx context.Context, a *Account, name string) error {
	var marker *string
	for range maxPages {
		out, err := a.iam.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: &name, Marker: marker})
		if err != nil {
			return err
		}
		for _, policy := range out.AttachedPolicies {
			if _, err := a.iam.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &name, PolicyArn: policy.PolicyArn}); err != nil && !fault.Gone(err) {
				return err
			}
		}
		if marker = out.Marker; !out.IsTruncated {
			break
		}
	}
	marker = nil
	for range maxPages {
		out, err := a.iam.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &name, Marker: marker})
		if err != nil {
			return err
		}
		for _, policy := range out.PolicyNames {
			if _, err := a.iam.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: &policy}); err != nil && !fault.Gone(err) {
				return err
			}
		}
		if marker = out.Marker; !out.IsTruncated {
			break
		}
	}
	return nil
}

func (r *run) removeProfile(ctx context.Context) error {
	name := ProfileName(r.o.InfraID)
	out, err := r.cluster.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if err == nil {
		for _, role := range out.InstanceProfile.Roles {
			_, failed := r.cluster.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: role.RoleName})
			if failed != nil && !fault.Gone(failed) {
				return fmt.Errorf("instance profile %s: %w", name, fault.Explain(failed))
			}
		}
		_, err = r.cluster.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	}
	if err != nil && !fault.Gone(err) {
		return fmt.Errorf("instance profile %s: %w", name, fault.Explain(err))
	}
	return nil
}
