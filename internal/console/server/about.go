package server

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/version"
)

// supportedVersions is the ConfigMap in which the operator says what it is; see internal/cli/version.
const supportedVersions = "supported-versions"

// about says which versions are at work, and what the console sees.
func (s *Server) about(r *request) (any, error) {
	_, own := s.Gate.(*access.Own)
	out := map[string]any{"console": version.This(), "where": cmp.Or(s.Where, "management cluster"), "user": r.viewer.Name, "own": own}
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	cm := &corev1.ConfigMap{}
	if err := r.viewer.Client.Get(ctx, client.ObjectKey{Namespace: cmp.Or(s.OperatorNamespace, "hypershift"), Name: supportedVersions}, cm); err != nil {
		out["operatorNote"] = "The operator's version can't be read: " + clip.Line(err.Error())
	} else {
		server := version.Build{Version: cm.Data[version.ServerKey], Commit: cm.Data["server-version"]}
		out["operator"], out["skew"] = server, version.Compare(version.This(), server)
	}
	trouble := map[string]string{}
	for _, k := range []world.Kind{world.Clusters, world.Pools, world.Packages, world.Rollouts} {
		if t := s.World.Trouble(k); t != "" {
			trouble[string(k)] = t
		}
	}
	out["trouble"] = trouble
	return out, nil
}
