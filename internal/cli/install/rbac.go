package install

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	hypershiftGroup = "hypershift.openshift.io"

	read  = "get,list,watch"
	write = "create,update,patch,delete"
	every = read + "," + write + ",deletecollection"
)

// clusterRules are the operator's rights in the whole management cluster.
//
// RBAC lets nobody grant what he doesn't hold, so this must be a superset of the Role that each hosted control plane's
// operator gets, and of the Roles which that one hands to its components; a test checks it. Where such a Role says "*", so
// must this, and those of releases of before do for our own APIs and those of Cluster API. Nowhere else: on service accounts it would
// mean to act as any of them.
func clusterRules(capi capiChoice) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		// Our own APIs, and the machine API that the control plane operator works with.
		rule(group(hypershiftGroup, "certificates.hypershift.openshift.io"), "*", "*"),
		rule(capi.groups("addons.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "capi-provider.agent-install.openshift.io", "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io",
			"infrastructure.cluster.x-k8s.io", "ipam.cluster.x-k8s.io"), "*", "*"),
		// Groups of Cluster API's past, and what OpenShift payloads grant to components that work with KubeVirt.
		rule(capi.groups("exp.cluster.x-k8s.io", "exp.infrastructure.cluster.x-k8s.io", "machines.cluster.x-k8s.io"), "*", "*"),
		rule(group("kubevirt.io"), "virtualmachines,virtualmachines/finalizers,virtualmachineinstances", "*"),
		rule(group("cdi.kubevirt.io"), "datavolumes", "get,list,watch,create,delete"),
		rule(group("subresources.kubevirt.io"), "virtualmachineinstances/addvolume,virtualmachineinstances/removevolume,virtualmachines/addvolume,virtualmachines/removevolume", "update"),
		rule(group("snapshot.storage.k8s.io"), "volumesnapshots", "get,create,delete"),
		rule(group(""), "persistentvolumes", "get"),

		// What the providers of KubeVirt, Agent and OpenStack get.
		rule(group(""), "services", "*"),
		rule(group("agent-install.openshift.io"), "agents", "get,list,watch,update,patch"),
		rule(group("extensions.hive.openshift.io"), "agentclusterinstalls", "*"),
		rule(group("hive.openshift.io"), "clusterdeployments", "*"),
		rule(group("openstack.k-orc.cloud"), "*", "*"),

		// One namespace per hosted cluster and what its control plane is made of.
		rule(group(""), "namespaces", read, write),
		rule(group(""), "configmaps,configmaps/finalizers,endpoints,events,persistentvolumeclaims,pods,pods/log,secrets,serviceaccounts,services", every),
		// Nobody may put pods into a namespace that is about to go.
		rule(group(""), "resourcequotas", "create"),
		rule(group("events.k8s.io"), "events", every),
		rule(group("apps", "batch"), "*", every),
		rule(group("policy"), "poddisruptionbudgets", every),
		rule(group("coordination.k8s.io"), "leases", every),
		rule(group("discovery.k8s.io"), "endpointslices,endpointslices/restricted", every),
		rule(group("networking.k8s.io"), "networkpolicies", read, write),
		rule(group("rbac.authorization.k8s.io"), "roles,rolebindings,clusterroles,clusterrolebindings", read, write),

		// For the operators of certificates for break-glass access, each for the signers of its own control plane. The names of those hold that of
		// the namespace, so the right to grant them can't be narrowed to names.
		rule(group("certificates.k8s.io"), "certificatesigningrequests", read),
		rule(group("certificates.k8s.io"), "certificatesigningrequests/approval,certificatesigningrequests/status", "update,patch"),
		rule(group("certificates.k8s.io"), "signers", "approve,sign"),

		// Optional APIs of the management cluster; the rights mean nothing where they aren't served.
		rule(group("image.openshift.io", "monitoring.coreos.com", "monitoring.rhobs", "route.openshift.io"), "*", "*"),

		// Only looked at: what the management cluster can do.
		rule(group(""), "nodes", read),
		rule(group("apiextensions.k8s.io"), "customresourcedefinitions", read),
		capi.conversionRule(),
		rule(group("storage.k8s.io"), "storageclasses", read),
		rule(group("scheduling.k8s.io"), "priorityclasses", read),
		// Whether something adds nodes when Pods wait.
		rule(group("autoscaling.openshift.io"), "machineautoscalers", read),
		rule(group("karpenter.sh"), "nodepools", read),
		rule(group("config.openshift.io"), "*", read),
		rule(group("operator.openshift.io"), "imagecontentsourcepolicies", read),
		// Lets Pods that this operator, or one below it, creates run with the user id of their namespace on OpenShift.
		rule(group("security.openshift.io"), "securitycontextconstraints", "use"),
	}
	if capi.Private && capi.Legacy {
		// Whoever moves the objects of Cluster API has to find everything that they own, of whatever kind: what was missed would be garbage.
		rules = append(rules, rule(group("*"), "*", "list"))
	}
	return rules
}

// sizeRules let the operator size hosted clusters, and label and taint nodes where it gives them some of their own.
func (o Options) sizeRules() []rbacv1.PolicyRule {
	if !o.SizeTagging {
		return nil
	}
	rules := []rbacv1.PolicyRule{rule(group("scheduling.hypershift.openshift.io"), "clustersizingconfigurations,clustersizingconfigurations/status", read, write)}
	// The size may follow from what API servers use, which it watches.
	rules = append(rules, rule(group("autoscaling.k8s.io"), "verticalpodautoscalers", read, write))
	if o.DedicatedNodes {
		rules = append(rules, rule(group(""), "nodes", "patch"))
	}
	return rules
}

// auditLogRules let the operator read what to do with audit logs, and count the snapshots that it has taken of them.
func (o Options) auditLogRules() []rbacv1.PolicyRule {
	if !o.AuditLogs {
		return nil
	}
	return []rbacv1.PolicyRule{
		rule(group("auditlogpersistence.hypershift.openshift.io"), "auditlogpersistenceconfigs", read),
		rule(group("auditlogpersistence.hypershift.openshift.io"), "auditlogpersistenceconfigs/status", "update,patch"),
		rule(group("snapshot.storage.k8s.io"), "volumesnapshots", read),
	}
}

// gatewayRules let the operator lead names of hosted clusters through a Gateway.
func (o Options) gatewayRules() []rbacv1.PolicyRule {
	if o.SharedGateway == "" {
		return nil
	}
	return []rbacv1.PolicyRule{rule(group("gateway.networking.k8s.io"), "tlsroutes", read, write)}
}

// namespacedRules are the operator's rights in its own namespace beyond clusterRules: none now, because leases, ConfigMaps
// and events are granted everywhere. They are listed so that narrowing clusterRules can't break leader election.
func namespacedRules() []rbacv1.PolicyRule {
	lease := rule(group("coordination.k8s.io"), "leases", "get,update,patch")
	lease.ResourceNames = []string{leaderElectionLease, leaderElectionLease + "-" + hyperv1.LegacyScope}
	return []rbacv1.PolicyRule{
		rule(group("coordination.k8s.io"), "leases", "create"), // a name can't restrict create
		lease,
		rule(group(""), "configmaps", read, write),
		rule(group("", "events.k8s.io"), "events", "create,patch"),
		rule(group(""), "pods", read),
	}
}

func group(names ...string) []string { return names }

// rule makes a PolicyRule; resources and verbs are lists separated by commas.
func rule(groups []string, resources string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: groups,
		Resources: strings.Split(resources, ","),
		Verbs:     strings.Split(strings.Join(verbs, ","), ","),
	}
}
