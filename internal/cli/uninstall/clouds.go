package uninstall

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/read"
)

// cloudsPage is how many HostedClusters are read at once.
const cloudsPage = 200

// Words of `hypershift destroy infra aws`. A test compares them with those of its own packages, which would bring the SDK of AWS to whoever imports this one.
const (
	ownerFlag = "vpc-owner-aws-creds"
	noPrefix  = "none"
)

// clouds says of each hosted cluster what stays in the account of a cloud when it is destroyed here, without credentials of that account. AWS is the
// one cloud in which our commands make anything.
func clouds(ctx context.Context, c client.Client) (stays []string, _ error) {
	list := &hyperv1.HostedClusterList{}
	for err := range read.Pages(ctx, c, list, cloudsPage) {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing HostedClusters: %w", err)
		}
		for i := range list.Items {
			if line := inAWS(&list.Items[i]); line != "" {
				stays = append(stays, line)
			}
		}
	}
	return stays, nil
}

// inAWS names what a hosted cluster has in an account of AWS, and the commands that remove it; empty: nothing.
func inAWS(hc *hyperv1.HostedCluster) string {
	platform := hc.Spec.Platform.AWS
	if platform == nil {
		return ""
	}
	domain := string(hc.Spec.DNS.BaseDomain)
	account := fmt.Sprintf("--infra-id %s --region %s", hc.Spec.InfraID, platform.Region)
	if platform.SharedVPC != nil {
		account += fmt.Sprintf(" --%s FILE", ownerFlag)
	}
	names := []string{"--name " + hc.Name, "--base-domain " + domain}
	if prefix := hc.Spec.DNS.BaseDomainPrefix; prefix != nil && *prefix == "" {
		names = append(names, "--base-domain-prefix "+noPrefix)
	} else if prefix != nil {
		names = append(names, "--base-domain-prefix "+string(*prefix))
	}
	return fmt.Sprintf("HostedCluster %s/%s, infrastructure %s, region %s, domain %s: hypershift destroy infra aws %s %s; hypershift destroy iam aws %s",
		hc.Namespace, hc.Name, hc.Spec.InfraID, platform.Region, domain, account, strings.Join(names, " "), account)
}
