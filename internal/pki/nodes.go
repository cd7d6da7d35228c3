package pki

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/contract/nodetrust"
)

// Nodes keep the files that they booted with. So a successor of an authority that they know signs no earlier than every node has said that it trusts it:
//
//	PlanFor ──▶ ConfigMap node-trust ──▶ hosted-cluster-config-operator ──▶ every node ──▶ condition NodesTrustAuthorities ──▶ PlanFor
//
// The condition names what is trusted by its hash, so one that speaks of former bundles lets nothing happen.

// knownToNodes says whether nodes have an authority in their files: they verify the API server by it, or who calls their kubelet.
func knownToNodes(authority string) bool {
	return authority == RootCA || authority == KubeletSigner || authority == ClusterSigner
}

// nodesFollow says whether every node trusts the successor, or nobody is to wait for those that don't.
func (p *planner) nodesFollow(g generations) bool {
	if !madeAt(g.next.cert).After(p.spec.LeaveNodes) {
		return true
	}
	cm := p.configMaps[nodetrust.ConfigMap]
	return cm != nil && p.spec.NodesTrust != "" && nodetrust.HashOf(cm.Data) == p.spec.NodesTrust && nodetrust.Holds(cm.Data, g.next.certPEM)
}

// planNodeTrust writes what nodes are to trust, from the first replacement on.
func (p *planner) planNodeTrust() {
	stored := p.configMaps[nodetrust.ConfigMap]
	if !p.toldNodes && stored == nil {
		return
	}
	root, ok1 := p.trusted[RootCA]
	kubelet, ok2 := p.trusted[KubeletSigner]
	signer, ok3 := p.trusted[ClusterSigner]
	if !ok1 || !ok2 || !ok3 {
		return // never narrow a bundle because one authority could not be read
	}
	want := map[string]string{nodetrust.RootKey: string(nodetrust.Sorted(root)), nodetrust.KubeletKey: string(nodetrust.Sorted(kubelet, signer)), nodetrust.AwaitedKey: "false"}
	if p.awaitsNodes {
		want[nodetrust.AwaitedKey] = "true"
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.spec.Namespace, Name: nodetrust.ConfigMap}}
	if stored != nil {
		cm = stored.DeepCopy()
	}
	same := stored != nil
	for key, value := range want {
		same = same && stored.Data[key] == value
	}
	if same {
		return
	}
	own(&cm.ObjectMeta, p.spec.Owner)
	setAll(&cm.Data, want)
	p.configMaps[nodetrust.ConfigMap] = cm
	p.plan.Copies = append(p.plan.Copies, Write{ConfigMap: cm, Reason: "nodes are to trust other authorities, or are waited for no more"})
}
