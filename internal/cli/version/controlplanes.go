package version

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/version"
)

// page is how many control planes are listed at a time.
const page = 500

// ControlPlaneOperators are those of one version.
type ControlPlaneOperators struct {
	Version        string       `json:"version,omitempty"` // semantic, without "v"; empty: their images don't tell
	HostedClusters int          `json:"hostedClusters"`
	Skew           version.Skew `json:"skew"` // beside the operator
}

// String is for people: "v1.2.3 (3 hosted clusters): Supported: it has the operator's minor version".
func (o ControlPlaneOperators) String() string {
	name, clusters := "version unknown", "hosted clusters"
	if o.Version != "" {
		name = "v" + o.Version
	}
	if o.HostedClusters == 1 {
		clusters = "hosted cluster"
	}
	return fmt.Sprintf("%s (%d %s): %s: %s", name, o.HostedClusters, clusters, o.Skew.Verdict, o.Skew.Message)
}

// controlPlaneOperators asks for those of all hosted clusters; nil for who may not list Deployments, for whom the rest is worth printing.
func controlPlaneOperators(ctx context.Context, flags connect.Flags, operator string) []ControlPlaneOperators {
	c, err := flags.Client()
	if err != nil {
		return nil
	}
	counts := map[string]int{}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
	for err := range read.Pages(ctx, c, list, page, client.MatchingFields{"metadata.name": names.ControlPlaneOperator}) {
		if err != nil {
			return nil
		}
		for i := range list.Items {
			counts[list.Items[i].Annotations[names.ControlPlaneOperatorVersion]]++
		}
	}
	return judgeControlPlanes(operator, counts)
}

// judgeControlPlanes makes a line of each version.
func judgeControlPlanes(operator string, counts map[string]int) []ControlPlaneOperators {
	var out []ControlPlaneOperators
	for v, n := range counts {
		out = append(out, ControlPlaneOperators{Version: v, HostedClusters: n, Skew: version.CompareControlPlane(operator, v)})
	}
	slices.SortFunc(out, func(a, b ControlPlaneOperators) int { return strings.Compare(a.Version, b.Version) })
	return out
}
