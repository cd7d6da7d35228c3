package certsigner

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// ClusterRights are the rules that the operator of a control plane namespace needs in the whole management cluster, by the name
// of their ClusterRole: it approves and signs for its own signers and no others. Everything else it does in its namespace.
func ClusterRights(namespace string) map[string][]rbacv1.PolicyRule {
	group, names := []string{certificatesv1.GroupName}, Names(namespace)
	requests := func(subresource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: group, Resources: []string{"certificatesigningrequests" + subresource}, Verbs: verbs}
	}
	signers := func(verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: group, Resources: []string{"signers"}, Verbs: []string{verb}, ResourceNames: names}
	}
	return map[string][]rbacv1.PolicyRule{
		namespace + "-csr-approver": {requests("", "get", "list", "watch"), requests("/approval", "update", "patch"), signers("approve")},
		namespace + "-csr-signer":   {requests("", "get", "list", "watch"), requests("/status", "update", "patch"), signers("sign")},
	}
}
