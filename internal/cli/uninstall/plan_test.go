package uninstall

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func thing(kind, namespace, name string, finalizers ...string) object {
	return object{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, ObjectKey: client.ObjectKey{Namespace: namespace, Name: name}, uid: name,
		finalizers: finalizers,
	}
}

func ofKind(plural, group string, instances ...object) kind {
	return kind{crd: thing("CustomResourceDefinition", "", plural+"."+group), group: group, ours: true, instances: instances}
}

// installation is one that nobody uses, with kinds added.
func installation(kinds ...kind) observed {
	return observed{
		installed: []object{
			thing("Namespace", "", "hypershift"), thing("PriorityClass", "", "hypershift-etcd"), thing("Service", "hypershift", "operator"),
			thing("Deployment", "hypershift", "operator"),
		},
		kinds: append([]kind{ofKind("hostedclusters", "hypershift.openshift.io")}, kinds...),
	}
}

func TestPlan(t *testing.T) {
	const group = "hypershift.openshift.io"
	demo := ofKind("hostedclusters", group, thing("HostedCluster", "clusters", "demo", "hypershift.openshift.io/finalizer"))
	pool := ofKind("nodepools", group, thing("NodePool", "clusters", "demo", "hypershift.openshift.io/finalizer"))
	pack, set := thing("Package", "web", "web"), thing("ObjectDeployment", "web", "web")
	set.owned = true
	packages, sets := ofKind("packages", "package-operator.run", pack), ofKind("objectdeployments", "package-operator.run", set)
	machine := ofKind("machines", "cluster.hypershift.openshift.io", thing("Machine", "clusters-demo", "a", "machine.cluster.x-k8s.io"))
	sizing := ofKind("clustersizingconfigurations", "scheduling.hypershift.openshift.io", thing("ClusterSizingConfiguration", "", "cluster"))
	foreign := ofKind("clusters", "cluster.x-k8s.io")
	foreign.ours, foreign.why = false, otherOwner
	handed := ofKind("machines", "cluster.x-k8s.io")
	handed.ours, handed.why, handed.converts = false, otherOwner, true

	for name, tc := range map[string]struct {
		obs   observed
		o     Options
		check func(Gomega, plan)
	}{
		"When nobody uses it programs should go first and namespaces last": {
			obs: installation(),
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(BeEmpty())
				g.Expect(p.programs).To(HaveExactElements(HaveField("Name", "operator")))
				g.Expect(p.objects).To(HaveExactElements(HaveField("Kind", "Service"), HaveField("Kind", "PriorityClass")), "the other way round than they came")
				g.Expect(p.crds).To(HaveExactElements(HaveField("Name", "hostedclusters."+group)))
				g.Expect(p.namespaces).To(HaveExactElements(HaveField("Name", "hypershift")))
			},
		},
		"When there is a hosted cluster it should refuse and say what to do": {
			obs: installation(demo, pool),
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(HaveExactElements(
					Equal("1 HostedCluster (clusters/demo): destroy them first (hypershift destroy cluster …), or add --destroy-hosted-clusters"),
					HavePrefix("1 NodePool (clusters/demo): ")))
			},
		},
		"When hosted clusters are to be destroyed it should do so first": {
			obs: installation(demo, pool),
			o:   Options{DestroyClusters: true},
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(BeEmpty())
				g.Expect(p.clusters).To(HaveExactElements(HaveField("Kind", "HostedCluster"), HaveField("Kind", "NodePool")))
			},
		},
		"When hosted clusters are there after all were destroyed it should refuse": {
			obs: installation(demo),
			o:   Options{DestroyClusters: true, after: true},
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(HaveExactElements(And(HavePrefix("1 HostedCluster (clusters/demo): "), HaveSuffix(cameSince))))
			},
		},
		"When packages are there after all were deleted it should refuse": {
			obs: installation(packages),
			o:   Options{DeletePackages: true, after: true},
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(HaveExactElements(And(HavePrefix("1 Package (web/web): "), HaveSuffix(cameSince))))
			},
		},
		"When there is a package it should refuse": {
			obs: installation(packages, sets),
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(ContainElement(HavePrefix("1 Package (web/web): delete them first, or add --delete-packages")))
			},
		},
		"When packages are to be deleted it should delete those that nobody owns": {
			obs: installation(packages, sets),
			o:   Options{DeletePackages: true},
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(BeEmpty())
				g.Expect(p.packages).To(HaveExactElements(HaveField("Kind", "Package")))
			},
		},
		"When an object has a finalizer that nobody would take off it should refuse": {
			obs: installation(machine),
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(HaveExactElements("1 Machine (clusters-demo/a): they have finalizers (machine.cluster.x-k8s.io) that nobody would remove: delete them first"))
			},
		},
		"When a definition of somebody else needs our conversion it should say so and stay, without it": {
			obs: installation(handed, foreign),
			check: func(g Gomega, p plan) {
				g.Expect(p.converted).To(HaveExactElements(HaveField("Name", "machines.cluster.x-k8s.io")))
				g.Expect(p.kept).To(ContainElements(
					And(HavePrefix("CustomResourceDefinition machines.cluster.x-k8s.io: "), ContainSubstring("its stored version alone")),
					Equal("CustomResourceDefinition clusters.cluster.x-k8s.io: it has another owner")))
				g.Expect(p.crds).To(HaveExactElements(HaveField("Name", "hostedclusters."+group)))
			},
		},
		"When such an object belongs to a cluster that is to be destroyed it should wait for that": {
			obs:   installation(demo, machine),
			o:     Options{DestroyClusters: true},
			check: func(g Gomega, p plan) { g.Expect(p.refusals).To(BeEmpty()) },
		},
		"When an object goes with its definition it should say so": {
			obs: installation(sizing),
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(BeEmpty())
				g.Expect(p.goes).To(HaveExactElements("1 ClusterSizingConfiguration (cluster) with their definition"))
			},
		},
		"When definitions are kept it should keep them with their objects": {
			obs: installation(machine, sizing),
			o:   Options{KeepCRDs: true},
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(BeEmpty())
				g.Expect(p.crds).To(BeEmpty())
				g.Expect(p.kept).To(HaveLen(3))
			},
		},
		"When somebody else owns Cluster API it should leave it alone": {
			obs: installation(foreign),
			check: func(g Gomega, p plan) {
				g.Expect(p.kept).To(HaveExactElements("CustomResourceDefinition clusters.cluster.x-k8s.io: it has another owner"))
				g.Expect(p.crds).NotTo(ContainElement(HaveField("Name", "clusters.cluster.x-k8s.io")))
			},
		},
		"When others have objects with names of ours it should leave them and say so": {
			obs: func() observed {
				obs := installation()
				obs.foreign = []object{thing("ClusterRole", "", "external-dns")}
				return obs
			}(),
			check: func(g Gomega, p plan) {
				g.Expect(p.kept).To(HaveExactElements("ClusterRole external-dns: it has another owner"))
				g.Expect(p.steps()).NotTo(ContainElement(ContainElement(HaveField("Name", "external-dns"))))
			},
		},
		"When the operator of packages is somebody else's it should leave the definitions of packages": {
			obs: func() observed {
				obs := installation(packages, sets)
				obs.foreign = []object{thing("Deployment", "package-operator-system", "package-operator-manager")}
				obs.leavePackages()
				return obs
			}(),
			o: Options{DeletePackages: true},
			check: func(g Gomega, p plan) {
				g.Expect(p.refusals).To(BeEmpty())
				g.Expect(p.packages).To(BeEmpty())
				g.Expect(p.crds).To(HaveExactElements(HaveField("Name", "hostedclusters."+group)))
				g.Expect(p.kept).To(ContainElement("CustomResourceDefinition packages.package-operator.run: " +
					"Deployment package-operator-system/package-operator-manager, which another owner has, needs it"))
			},
		},
		"When the operator's namespace holds more it should stay": {
			obs: func() observed {
				obs := installation()
				obs.strangers = map[string][]string{"hypershift": {"Deployment hypershift/wiki"}}
				return obs
			}(),
			check: func(g Gomega, p plan) {
				g.Expect(p.namespaces).To(BeEmpty())
				g.Expect(p.kept).To(HaveExactElements("Namespace hypershift: there is more in it: Deployment hypershift/wiki"))
			},
		},
		"When the operator was installed into a namespace of the management cluster it should stay": {
			obs: observed{installed: []object{thing("Namespace", "", "kube-system")}},
			check: func(g Gomega, p plan) {
				g.Expect(p.namespaces).To(BeEmpty())
				g.Expect(p.empty()).To(BeTrue())
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.check(NewWithT(t), planFor(tc.obs, tc.o))
		})
	}
}
