package clusterversionoperator

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
)

func TestPrepareScript(t *testing.T) {
	of := func(platform hyperv1.PlatformType, c *hyperv1.ClusterConfiguration) *hyperv1.HostedControlPlane {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Platform.Type, hcp.Spec.Configuration = platform, c
		return hcp
	}
	gates := func(set string) *hyperv1.ClusterConfiguration {
		return &hyperv1.ClusterConfiguration{FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{FeatureSet: configv1.FeatureSet(set)}}}
	}
	oidc := &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC}}
	for name, tc := range map[string]struct {
		hcp              *hyperv1.HostedControlPlane
		files, leftovers int
		says             string
		err              string
	}{
		"When the cluster is plain it should remove what runs beside its control plane": {hcp: of(hyperv1.AWSPlatform, nil), files: 45, leftovers: 14, says: "*Default*"},
		"When storage is the guest's own it should keep its operators":                  {hcp: of(hyperv1.IBMCloudPlatform, nil), files: 43, leftovers: 5},
		"When users come from elsewhere it should remove the OAuth client":              {hcp: of(hyperv1.AWSPlatform, oidc), files: 46, leftovers: 14, says: "0000_50_console-operator_01-oauth.yaml"},
		"When there is a feature set it should keep what is for that":                   {hcp: of(hyperv1.AWSPlatform, gates("TechPreviewNoUpgrade")), files: 45, leftovers: 14, says: "*TechPreviewNoUpgrade*"},
		"When the feature set would be a command it should be refused":                  {hcp: of(hyperv1.AWSPlatform, gates("x; rm -rf /")), err: "spec.configuration.featureGate.featureSet"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			script, err := prepareScript(tc.hcp)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(strings.Count(script, "rm -f /var/payload/release-manifests/")).To(Equal(tc.files))
			g.Expect(strings.Count(script, `release.openshift.io/delete: "true"`)).To(Equal(tc.leftovers))
			g.Expect(script).To(ContainSubstring(tc.says))
		})
	}
}

func TestMetrics(t *testing.T) {
	for name, tc := range map[string]struct {
		env component.Environment
		url string
	}{
		"When nothing is said it should read none":                           {},
		"When access is given it should read those of the cluster":           {component.Environment{CVOMetricsAccess: true}, "https://thanos-querier.openshift-monitoring.svc:9092?namespace=ns"},
		"When the installation is ROSA's it should read those of its stack":  {component.Environment{RHOBSMonitoring: true, ManagedService: "ROSA-HCP"}, "http://hypershift-monitoring-stack-prometheus.openshift-observability-operator.svc:9090"},
		"When a URL is given it should be that":                              {component.Environment{CVOMetricsAccess: true, CVOPrometheusURL: "https://p"}, "https://p"},
		"When the stack is there but not of a managed service it should not": {env: component.Environment{RHOBSMonitoring: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Namespace = "ns"
			ctx := component.WorkloadContext{HCP: hcp, Release: &release.Release{}, UserRelease: &release.Release{}, Environment: tc.env}
			d := &appsv1.Deployment{}
			d.Spec.Template.Labels = map[string]string{}
			d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "prepare-payload"}, {Name: "bootstrap"}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: Name}}
			g.Expect(adaptDeployment(ctx, d)).To(Succeed())
			args := d.Spec.Template.Spec.Containers[0].Args
			if tc.url == "" {
				g.Expect(args).NotTo(ContainElement(ContainSubstring("--metrics-url")))
				g.Expect(d.Spec.Template.Labels).To(BeEmpty())
				return
			}
			g.Expect(args).To(ContainElement("--metrics-url=" + tc.url))
			g.Expect(d.Spec.Template.Labels).To(HaveKeyWithValue(component.NeedMetricsServerAccessAnnotation, "true"))
		})
	}
}
