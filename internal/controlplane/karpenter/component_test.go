package karpenter

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv/bare"
)

const image = "10.244.0.1:5000/hypershift/karpenter@sha256:1111111111111111111111111111111111111111111111111111111111111111"

func autoNode(platform hyperv1.KarpenterPlatformType) *hyperv1.AutoNode {
	return &hyperv1.AutoNode{Provisioner: hyperv1.ProvisionerConfig{Name: hyperv1.ProvisionerKarpenter, Karpenter: &hyperv1.KarpenterConfig{Platform: platform}}}
}

// asked is a control plane that has come up and asks for Karpenter.
func asked(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.AutoNode = autoNode(hyperv1.KarpenterLocalPlatform)
	hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig"}
}

func TestWanted(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*hyperv1.HostedControlPlane)
		lacks   bool // the release has no image of it
		unready bool // there is no kubeconfig
		want    bool
		problem string
	}{
		"When Karpenter is asked for and can reach the cluster it should be wanted": {want: true},
		"When there is no kubeconfig it should not be wanted yet":                   {unready: true},
		"When nobody asks for it it should not be wanted":                           {change: func(h *hyperv1.HostedControlPlane) { h.Spec.AutoNode = nil }},
		"When it is asked for on AWS it should not be wanted": {
			change: func(h *hyperv1.HostedControlPlane) { h.Spec.AutoNode = autoNode(hyperv1.KarpenterAWSPlatform) }},
		"When the cluster has not come up it should not be wanted": {change: func(h *hyperv1.HostedControlPlane) { h.Status.KubeConfig = nil }},
		"When the release lacks its image it should say how to get it": {lacks: true,
			problem: "release 1.36.3 has no image \"karpenter\": `make karpenter up` adds it to local releases, and those of distributions include it"},
		"When the cluster is of another platform it should say so": {
			change: func(h *hyperv1.HostedControlPlane) { h.Spec.Platform.Type = hyperv1.NonePlatform }, problem: "the hosted cluster is of platform None"},
		"When machines are somebody else's it should say so": {
			change: func(h *hyperv1.HostedControlPlane) { h.Annotations[hyperv1.DisableMachineManagement] = "true" }, problem: "remove it, or remove spec.autoNode"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := bare.HostedControlPlane(asked)
			if tc.change != nil {
				tc.change(hcp)
			}
			var objs []client.Object
			if !tc.unready {
				objs = bare.Credentials(t)
			}
			ctx := bare.Context(t, hcp, objs...)
			if !tc.lacks {
				ctx.Release.Images[Tag] = image
			}
			got, err := wanted(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
			g.Expect(Problem(hcp, ctx.Release)).To(ContainSubstring(tc.problem))
			if tc.problem == "" {
				g.Expect(Problem(hcp, ctx.Release)).To(BeEmpty())
			}
		})
	}
	t.Run("When something of it may be left the component should be looked at, and else never", func(t *testing.T) {
		g := NewWithT(t)
		hcp := bare.HostedControlPlane()
		g.Expect(Concerns(hcp)).To(BeFalse())
		hcp.Status.Conditions = append(hcp.Status.Conditions, conditions.False(hyperv1.AutoNodeEnabled, hyperv1.AutoNodeProgressingReason, ""))
		g.Expect(Concerns(hcp)).To(BeTrue())
		g.Expect(Concerns(bare.HostedControlPlane(asked))).To(BeTrue())
	})
}

// TestRetiring takes spec.autoNode away from a control plane whose Karpenter runs.
func TestRetiring(t *testing.T) {
	deployed := func(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: bare.Namespace, Name: Name, Generation: 3}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: Name, Env: []corev1.EnvVar{{Name: "RETIRE", Value: "true"}}}}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, UpdatedReplicas: 1, AvailableReplicas: 1}
		for _, c := range change {
			c(d)
		}
		return d
	}
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		counted    bool // machines are left, or were counted before
		want       bool
	}{
		"When it was never there it should stay so":                            {},
		"When its program was not told yet it should be told":                  {deployment: deployed(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = nil }), want: true},
		"When machines are left it should stay":                                {deployment: deployed(), counted: true, want: true},
		"When no machine is left it should go":                                 {deployment: deployed()},
		"When its program has not counted since it was told it should stay":    {deployment: deployed(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), want: true},
		"When the program that was not told may still run it should stay":      {deployment: deployed(func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 2 }), want: true},
		"When only the program that was not told was available it should stay": {deployment: deployed(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := bare.HostedControlPlane(asked)
			hcp.Spec.AutoNode = nil
			hcp.Status.Conditions = append(hcp.Status.Conditions, conditions.False(hyperv1.AutoNodeEnabled, hyperv1.AutoNodeProgressingReason, ""))
			if tc.counted {
				hcp.Status.AutoNode.NodeClaimCount = ptr.To[int32](1)
			}
			objs := bare.Credentials(t)
			if tc.deployment != nil {
				objs = append(objs, tc.deployment)
			}
			ctx := bare.Context(t, hcp, objs...)
			ctx.Release.Images[Tag] = image
			got, err := wanted(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
			if got {
				out, err := NewComponent().Render(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.Workload.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "RETIRE", Value: "true"}))
			}
		})
	}
}

func TestRendered(t *testing.T) {
	for name, private := range map[string]bool{"When types are private it should say so to the program": true, "When types are standard it should not": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := bare.HostedControlPlane(asked)
			if private {
				hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] = "true"
			}
			ctx := bare.Context(t, hcp, bare.Credentials(t)...)
			ctx.Release.Images[Tag] = image
			out, err := NewComponent().Render(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			pod := out.Workload.(*appsv1.Deployment).Spec.Template
			g.Expect(pod.Spec.Containers).To(HaveLen(1), "it needs no proxy")
			main := pod.Spec.Containers[0]
			g.Expect(main.Image).To(Equal(image))
			g.Expect(main.Env).To(ContainElements(corev1.EnvVar{Name: "MANAGEMENT_NAMESPACE", Value: bare.Namespace}, corev1.EnvVar{Name: "HOSTED_CONTROL_PLANE", Value: hcp.Name}, corev1.EnvVar{Name: "DISABLE_LEADER_ELECTION", Value: "true"}))
			g.Expect(main.Env).NotTo(ContainElement(HaveField("Name", "RETIRE")), "it is asked for")
			g.Expect(slices.ContainsFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == "USE_PRIVATE_CAPI_TYPES" && e.Value == "true" })).To(Equal(private))
			i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "kubeconfig" })
			g.Expect(i).To(BeNumerically(">=", 0))
			g.Expect(pod.Spec.Volumes[i].Secret.SecretName).To(Equal("demo-x7k2p-kubeconfig"))
			for _, obj := range out.Manifests {
				if role, ok := obj.(*rbacv1.Role); ok {
					for _, rule := range role.Rules {
						g.Expect(rule.Verbs).NotTo(ContainElement("*"))
						g.Expect(rule.Resources).NotTo(ContainElement("*"))
					}
				}
			}
		})
	}
}
