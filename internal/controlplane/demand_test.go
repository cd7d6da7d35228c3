package controlplane

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
)

// What is said to be needed must be what is rendered in the end, for every fixture: requests, number of pods, and where they may be.
func TestDemandIsWhatIsRendered(t *testing.T) {
	for name, mutate := range fixtures {
		t.Run("When a control plane is "+name+" its demand should be what it is made of", func(t *testing.T) {
			g := NewWithT(t)
			ctx := workloadContext(t, hostedControlPlane(mutate), mounted()...)
			ctx.CAPIProxyImage, ctx.StoredCAPIGroups = "registry.example.com/installed@sha256:1", true
			list := allWorkloads()
			for _, s := range shards.Managed(ctx.HCP.Spec.Etcd) {
				list = append(list, etcd.ShardComponent(s.Name))
			}
			demanded := map[string]bool{}
			for _, c := range list {
				wctx := ctx
				wctx.OmitOwnerReference = c.Name() == cpo.Name
				d, err := c.Demand(wctx)
				g.Expect(err).NotTo(HaveOccurred(), c.Name())
				if d == nil {
					continue
				}
				demanded[c.Name()] = true
				out, err := c.Render(wctx)
				g.Expect(err).NotTo(HaveOccurred(), c.Name())
				var template corev1.PodTemplateSpec
				replicas := int32(1)
				switch w := out.Workload.(type) {
				case *appsv1.Deployment:
					template, replicas = w.Spec.Template, ptr.Deref(w.Spec.Replicas, 1)
				case *appsv1.StatefulSet:
					template, replicas = w.Spec.Template, ptr.Deref(w.Spec.Replicas, 1)
				}
				if replicas > 0 { // one that sleeps is counted
					g.Expect(d.Replicas).To(Equal(replicas), c.Name())
				}
				requests := func(spec corev1.PodSpec) corev1.ResourceList {
					return resourcehelper.PodRequests(&corev1.Pod{Spec: spec}, resourcehelper.PodResourcesOptions{})
				}
				g.Expect(cmp.Diff(requests(template.Spec), requests(d.Template.Spec))).To(BeEmpty(), c.Name())
				g.Expect(d.Template.Spec.NodeSelector).To(Equal(template.Spec.NodeSelector), c.Name())
				g.Expect(d.Template.Spec.Tolerations).To(Equal(template.Spec.Tolerations), c.Name())
				g.Expect(d.Template.Spec.PriorityClassName).To(Equal(template.Spec.PriorityClassName), c.Name())
				affinity := template.Spec.Affinity.DeepCopy()
				affinity.PodAffinity = nil // a wish
				wished := d.Template.Spec.Affinity.DeepCopy()
				g.Expect(cmp.Diff(affinity.NodeAffinity, wished.NodeAffinity)).To(BeEmpty(), c.Name())
				g.Expect(affinity.PodAntiAffinity == nil).To(Equal(wished.PodAntiAffinity == nil), c.Name())
			}
			g.Expect(slices.Sorted(maps.Keys(demanded))).To(ContainElements("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", cpo.Name, "hosted-cluster-config-operator"))
		})
	}
}

func TestDemandFollowsTheSpec(t *testing.T) {
	demand := func(t *testing.T, c *component.WorkloadComponent, mutate func(*hyperv1.HostedControlPlane)) *component.Demand {
		d, err := c.Demand(workloadContext(t, hostedControlPlane(mutate)))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return d
	}
	t.Run("When requests are overridden by annotation it should ask for them", func(t *testing.T) {
		d := demand(t, workloads()[1], func(hcp *hyperv1.HostedControlPlane) {
			hcp.Annotations["resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver"] = "cpu=3"
		})
		NewWithT(t).Expect(component.Container(&d.Template.Spec, "kube-apiserver").Resources.Requests.Cpu().String()).To(Equal("3"))
	})
	t.Run("When a control plane is highly available it should ask for three members apart", func(t *testing.T) {
		g := NewWithT(t)
		d := demand(t, workloads()[0], highlyAvailable)
		g.Expect(d.Replicas).To(BeEquivalentTo(3))
		g.Expect(d.Surge).To(BeFalse())
	})
	t.Run("When etcd is not ours it should ask for none", func(t *testing.T) {
		d := demand(t, workloads()[0], func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged })
		NewWithT(t).Expect(d).To(BeNil())
	})
}
