package describe

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/why"
)

func sample() *Node {
	well := why.Finding{Health: why.Healthy}
	return &Node{Kind: "HostedCluster", Name: "clusters/demo", Finding: why.Finding{Health: why.Degraded, Cause: "etcd"}, Children: []*Node{
		{Kind: "ControlPlane", Name: "clusters-demo", Children: []*Node{
			{Kind: "Component", Name: "etcd", Finding: why.Finding{Health: why.Degraded, Cause: "1 of 3"}, Children: []*Node{
				{Kind: "Pod", Name: "etcd-0", Finding: well}, {Kind: "Pod", Name: "etcd-1", Finding: why.Finding{Health: why.Degraded, Cause: "CrashLoopBackOff"}},
			}},
			{Kind: "Component", Name: "kube-scheduler", Finding: well}, {Kind: "Component", Name: "kube-apiserver", Finding: well},
		}},
		{Kind: "NodePools", Children: []*Node{{Kind: "NodePool", Name: "demo", Finding: well}}},
	}}
}

func TestTree(t *testing.T) {
	t.Run("When only issues are shown it should count what is well", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		tree := sample()
		tree.prune()
		g.Expect(tree.print(&out)).To(Succeed())
		g.Expect(out.String()).To(Equal(`HostedCluster clusters/demo  Degraded: etcd
├─ ControlPlane clusters-demo
│  ├─ Component etcd  Degraded: 1 of 3
│  │  ├─ Pod etcd-1  Degraded: CrashLoopBackOff
│  │  └─ 1 Pod: well
│  └─ 2 Components: well
└─ NodePools: well
`))
	})
	t.Run("When everything is shown it should leave nothing out", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(sample().print(&out)).To(Succeed())
		g.Expect(out.String()).To(And(ContainSubstring("kube-scheduler  Healthy"), ContainSubstring("Pod etcd-0")))
	})
}
