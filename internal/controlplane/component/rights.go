package component

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/names"
)

// everyVerb are the verbs of built-in kinds that mean no more than they say.
var everyVerb = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// clusterScoped are kinds that a Role can't grant: to list them means nothing, and whoever writes the Role would have to hold them.
var clusterScoped = []string{"nodes", "customresourcedefinitions"}

// RoleRules are the rules of the Role in a file of a component's assets.
func RoleRules(assets fs.ReadFileFS, file, component string) ([]rbacv1.PolicyRule, error) {
	raw, err := assets.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the rights of %s: %w", component, err)
	}
	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		return nil, fmt.Errorf("reading the rights of %s: %w", component, err)
	}
	return role.Rules, nil
}

// liveRights are what is granted instead of what the published Roles of a payload say.
func liveRights(ctx WorkloadContext, obj client.Object) {
	role, ok := obj.(*rbacv1.Role)
	if !ok || ctx.PublishedRights || ctx.Release == nil || ctx.Release.Kubernetes {
		return
	}
	role.Rules = namedVerbs(role.Rules)
	if role.Name == names.ControlPlaneOperator { // it is ours, and tells what it does by events of group events.k8s.io
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	}
}

// namedVerbs spells out what published Roles of a payload grant by "*", for built-in kinds: on some of them that is more than it looks like. On service
// accounts it means to act as any of them.
func namedVerbs(published []rbacv1.PolicyRule) (rules []rbacv1.PolicyRule) {
	for _, rule := range published {
		if slices.ContainsFunc(rule.APIGroups, custom) {
			rules = append(rules, rule)
			continue
		}
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return slices.Contains(clusterScoped, r) })
		if len(rule.Resources) == 0 {
			continue
		}
		if slices.Contains(rule.Verbs, rbacv1.VerbAll) {
			rule.Verbs = slices.Clone(everyVerb)
		}
		rules = append(rules, rule)
	}
	return rules
}

// custom says whether the kinds of a group are optional ones, without verbs of their own.
func custom(group string) bool {
	for _, suffix := range []string{"hypershift.openshift.io", "cluster.x-k8s.io", "agent-install.openshift.io", "monitoring.coreos.com", "monitoring.rhobs",
		"route.openshift.io", "image.openshift.io", "kubevirt.io", "externaldns.k8s.io", "secrets-store.csi.x-k8s.io"} {
		if group == suffix || strings.HasSuffix(group, "."+suffix) {
			return true
		}
	}
	return false
}
