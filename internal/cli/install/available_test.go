package install

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
)

// parts are what an installation with packages consists of, as far as these tests look at it.
type parts struct {
	deployments []*appsv1.Deployment
	budgets     []*policyv1.PodDisruptionBudget
	policies    []string // namespaces with a policy of signatures
}

func partsOf(o Options) (out parts) {
	for _, obj := range Resources(o) {
		switch obj := obj.(type) {
		case *appsv1.Deployment:
			out.deployments = append(out.deployments, obj)
		case *policyv1.PodDisruptionBudget:
			out.budgets = append(out.budgets, obj)
		case *corev1.ConfigMap:
			if obj.Name == signaturePolicyName {
				out.policies = append(out.policies, obj.Namespace)
			}
		}
	}
	return out
}

func TestReplicas(t *testing.T) {
	t.Run("When there is one Pod of each operator nothing should hold up a drain", func(t *testing.T) {
		g := NewWithT(t)
		got := partsOf(resources(func(o *Options) { o.PackageOperator = true }))
		g.Expect(got.budgets).To(BeEmpty())
		for _, d := range got.deployments {
			g.Expect(d.Spec.Template.Spec.TopologySpreadConstraints).To(BeEmpty())
			g.Expect(d.Spec.Template.Spec.Containers[0].Env).NotTo(ContainElement(HaveField("Name", "LEASE_DURATION")))
		}
	})
	t.Run("When there are two they should be apart, drained one at a time, and take over soon", func(t *testing.T) {
		g := NewWithT(t)
		got := partsOf(resources(func(o *Options) { o.PackageOperator, o.Replicas = true, 2 }))
		g.Expect(got.budgets).To(HaveLen(2))
		g.Expect(got.deployments).To(HaveLen(2))
		for i, d := range got.deployments {
			pod := d.Spec.Template
			g.Expect(d.Spec.Replicas).To(Equal(ptr.To[int32](2)))
			g.Expect(pod.Spec.TopologySpreadConstraints).To(HaveLen(2))
			g.Expect(pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels).To(Equal(d.Spec.Selector.MatchLabels))
			g.Expect(pod.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "LEASE_DURATION", Value: standbyLease}))
			g.Expect(got.budgets[i].Spec.Selector).To(Equal(d.Spec.Selector))
			g.Expect(got.budgets[i].Namespace).To(Equal(d.Namespace))
		}
	})
	t.Run("When a number makes no sense it should name the bounds", func(t *testing.T) {
		NewWithT(t).Expect(resources(func(o *Options) { o.Replicas = 9 }).Validate()).To(MatchError(ContainSubstring("--replicas 9: must be 1 to 5")))
	})
}

func TestSignaturePolicy(t *testing.T) {
	g := NewWithT(t)
	with := func(policy string) parts {
		return partsOf(resources(func(o *Options) { o.PackageOperator, o.SignaturePolicy = true, []byte(policy) }))
	}
	got, other := with("a"), with("b")
	g.Expect(got.policies).To(ConsistOf(DefaultNamespace, PackageOperatorNamespace))
	for i, d := range got.deployments {
		pod := d.Spec.Template
		g.Expect(pod.Spec.Containers[0].Args).To(ContainElement("--image-signature-policy=/etc/hypershift/image-signature-policy/policy.yaml"))
		g.Expect(pod.Spec.Volumes).To(ContainElement(HaveField("Name", signaturePolicyName)))
		g.Expect(pod.Annotations[signaturePolicyHash]).NotTo(Equal(other.deployments[i].Spec.Template.Annotations[signaturePolicyHash]),
			"another policy starts the Pods anew")
	}
	g.Expect(with("").policies).To(BeEmpty())
}

func TestTrustBundle(t *testing.T) {
	g := NewWithT(t)
	with := func(bundle string) (d []*appsv1.Deployment, namespaces []string) {
		for _, obj := range Resources(resources(func(o *Options) {
			o.PackageOperator, o.TrustBundle, o.RegistryOverride = true, []byte(bundle), map[string]string{"quay.io": "mirror.example.com/quay", "a": "b"}
		})) {
			switch obj := obj.(type) {
			case *appsv1.Deployment:
				d = append(d, obj)
			case *corev1.ConfigMap:
				if obj.Name == trustBundleName {
					g.Expect(obj.Data).To(Equal(map[string]string{trustBundleKey: bundle}))
					namespaces = append(namespaces, obj.Namespace)
				}
			}
		}
		return d, namespaces
	}
	got, namespaces := with("a")
	other, _ := with("b")
	g.Expect(namespaces).To(ConsistOf(DefaultNamespace, PackageOperatorNamespace))
	g.Expect(got).To(HaveLen(2))
	for i, d := range got {
		pod := d.Spec.Template
		g.Expect(pod.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "SSL_CERT_DIR", Value: certificateFolders}), d.Name)
		g.Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", trustBundleFolder)), d.Name)
		g.Expect(pod.Spec.Volumes).To(ContainElement(HaveField("Name", trustBundleVolume)), d.Name)
		g.Expect(pod.Annotations[trustBundleHash]).NotTo(Equal(other[i].Spec.Template.Annotations[trustBundleHash]), "other certificates start the Pods anew")
		g.Expect(pod.Spec.Containers[0].Args).To(ContainElement(HaveSuffix("-overrides=a=b,quay.io=mirror.example.com/quay")), d.Name)
	}
	got, namespaces = with("")
	g.Expect(namespaces).To(BeEmpty())
	for _, d := range got {
		g.Expect(d.Spec.Template.Annotations).NotTo(HaveKey(trustBundleHash))
	}
}

func TestTrustBundleInChart(t *testing.T) {
	g := NewWithT(t)
	files, err := Chart(resources(func(o *Options) { o.TrustBundle = []byte("a") }))
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"operator", packageManagerName} {
		text := string(files["templates/deployment-"+name+".yaml"])
		g.Expect(text).To(MatchRegexp(`(?m)^( *)annotations:\n +`+regexp.QuoteMeta(trustBundleHash)+`: \S+\n *\{\{- with \.Values\.imageSignaturePolicy \}\}\n +`+
			regexp.QuoteMeta(signaturePolicyHash)+`: .*\n *\{\{- end \}\}\n`), "there are annotations without a policy, too")
		g.Expect(text).To(ContainSubstring("-overrides=%s"), name)
	}
	g.Expect(files).To(HaveKey("templates/configmap-" + trustBundleName + "-in-" + PackageOperatorNamespace + ".yaml"))
}

func TestAwaited(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"When the operator is all that is installed it should wait for that": {func(*Options) {}, []string{"operator"}},
		"When other programs are installed it should wait for them, too": {func(o *Options) {
			o.PackageOperator, o.SharedIngress, o.ExternalDNS.Provider = true, true, dnsAWS
		}, []string{"operator", "package-operator-manager", "router", "external-dns"}},
		"When there are only definitions it should wait for nobody": {func(o *Options) { o.Scope = ScopeCRDs }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := resources(tc.change)
			var got []string
			for _, d := range awaited(o) {
				got = append(got, d.key.Name)
				g.Expect(Resources(o)).To(ContainElement(And(BeAssignableToTypeOf(&appsv1.Deployment{}), HaveField("Name", d.key.Name), HaveField("Namespace", d.key.Namespace),
					HaveField("Spec.Selector.MatchLabels", map[string]string(d.labels)))))
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestExternalDNSPulls(t *testing.T) {
	g := NewWithT(t)
	o := resources(func(o *Options) { o.PullSecret, o.ExternalDNS.Provider = []byte("{}"), dnsAWS })
	g.Expect(Resources(o)).To(ContainElement(And(BeAssignableToTypeOf(&corev1.ServiceAccount{}), HaveField("Name", externalDNSName),
		HaveField("ImagePullSecrets", []corev1.LocalObjectReference{{Name: pullSecretName}}))), "it comes from the registry that the operator comes from")
}
