package nodepool

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/release"
)

// payloadExample is a pool of an OpenShift release, whose control plane has written the core configurations.
func payloadExample(o *observed) {
	o.pool.Spec.Platform.Type, o.hc.Spec.Platform.Type = hyperv1.NonePlatform, hyperv1.NonePlatform
	o.hc.Spec.ImageContentSources = nil
	o.hc.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "api.example.com", Port: 6443}
	o.hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.3", CompletionTime: ptr.To(metav1.NewTime(noon))}}}
	o.release = &release.Release{Image: "quay.io/ocp:4.20.3", Version: "4.20.3", KubernetesVersion: "1.33.5", Arch: release.ArchMulti,
		Images: map[string]string{"haproxy-router": "quay.io/haproxy@sha256:1", "hypershift": "quay.io/hypershift@sha256:2"}}
	o.coreConfig = []nodeconfig.Source{
		{Name: "fips", Data: "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 30-fips}\nspec: {fips: true}"},
		{Name: "ssh", Data: "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 99-worker-ssh}\nspec: {config: {ignition: {version: 3.2.0}}}"},
	}
}

func payloadPlan(t *testing.T, mutate ...func(*observed)) plan {
	t.Helper()
	return planFor(example(t, append([]func(*observed){payloadExample}, mutate...)...), noon, "token")
}

func TestPayloadPool(t *testing.T) {
	t.Run("When a pool has an OpenShift release it should get a token and user data", func(t *testing.T) {
		g := NewWithT(t)
		p := payloadPlan(t)
		for _, c := range p.conditions {
			if strings.HasPrefix(c.Type, "Valid") && c.Type != hyperv1.NodePoolValidGeneratedPayloadConditionType {
				g.Expect(c.Status).To(Equal(corev1.ConditionTrue), c.Type+": "+c.Message)
			}
		}
		g.Expect(p.createToken).NotTo(BeNil())
		g.Expect(string(p.createToken.Data[token.ReleaseKey])).To(Equal("quay.io/ocp:4.20.3"))
		g.Expect(p.apply).To(HaveLen(1))
	})
	t.Run("When the control plane has not written all core configurations it should wait", func(t *testing.T) {
		g := NewWithT(t)
		p := payloadPlan(t, func(o *observed) { o.coreConfig = o.coreConfig[:1] })
		c := findCondition(p.conditions, hyperv1.NodePoolValidMachineConfigConditionType)
		g.Expect(c.Reason).To(Equal(ReasonWaitingForHostedCluster))
		g.Expect(c.Message).To(ContainSubstring("expected 2 core ignition configs, found 1"))
		g.Expect(p.createToken).To(BeNil())
	})
	t.Run("When the platform's machines are containers it should refuse the release", func(t *testing.T) {
		g := NewWithT(t)
		p := payloadPlan(t, func(o *observed) {
			o.pool.Spec.Platform.Type, o.hc.Spec.Platform.Type = hyperv1.LocalPlatform, hyperv1.LocalPlatform
		})
		g.Expect(findCondition(p.conditions, hyperv1.NodePoolValidPlatformImageType).Message).To(ContainSubstring("use a HostedCluster of platform None"))
		g.Expect(p.createToken).To(BeNil())
	})
}

func TestPayloadHash(t *testing.T) {
	hash := func(t *testing.T, mutate ...func(*observed)) string {
		t.Helper()
		p := payloadPlan(t, mutate...)
		if p.createToken == nil {
			t.Fatalf("there is no token: %v", p.conditions)
		}
		got, _ := token.HashOf(p.createToken.Annotations[hyperv1.NodePoolAnnotation][len("clusters/"):], p.createToken.Name)
		return got
	}
	base := hash(t)
	NewWithT(t).Expect(hash(t)).To(Equal(base))
	for name, tc := range map[string]struct {
		change func(*observed)
		rolls  bool
	}{
		"When the release's other images change it should replace nothing":     {func(o *observed) { o.release.Images["etcd"] = "quay.io/etcd@sha256:3" }, false},
		"When the release is named otherwise it should replace nothing":        {func(o *observed) { o.release.Image = "mirror.example.com/ocp:4.20.3" }, false},
		"When the stream of the version is written down it should not count":   {func(o *observed) { o.pool.Spec.OSImageStream.Name = "rhel-9" }, false},
		"When the pull secret has other content it should replace nothing":     {func(o *observed) { o.pullSecret = []byte(`{"auths":{}}`) }, false},
		"When the TLS profile of an older release changes it should not count": {tlsProfile, false},
		"When another stream is asked for it should count":                     {func(o *observed) { o.pool.Spec.OSImageStream.Name = "rhel-10" }, true},
		"When the version changes it should count":                             {func(o *observed) { o.release.Version = "4.20.2" }, true},
		"When a core configuration changes it should count":                    {func(o *observed) { o.coreConfig[0].Data = strings.ReplaceAll(o.coreConfig[0].Data, "true", "false") }, true},
		"When the API is published elsewhere it should count":                  {func(o *observed) { o.hc.Status.ControlPlaneEndpoint.Host = "api2.example.com" }, true},
		"When another image has HAProxy it should count": {func(o *observed) {
			o.pool.Annotations = map[string]string{hyperv1.NodePoolHAProxyImageAnnotation: "quay.io/own:1"}
		}, true},
		"When there is a proxy it should count": {func(o *observed) {
			o.hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy:3128"}}
		}, true},
		"When the settings of images change it should count": {func(o *observed) {
			o.hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{ExternalRegistryHostnames: []string{"x"}}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(hash(t, tc.change) != base).To(Equal(tc.rolls))
		})
	}
	t.Run("When the TLS profile of a release whose nodes read it changes it should count", func(t *testing.T) {
		newer := func(o *observed) {
			o.release.Version = "4.23.0"
			o.hc.Status.Version.History[0].Version = "4.23.0"
		}
		NewWithT(t).Expect(hash(t, newer, tlsProfile)).NotTo(Equal(hash(t, newer)))
	})
}

func tlsProfile(o *observed) {
	o.hc.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType}}}
}

func TestAPIProxy(t *testing.T) {
	t.Run("When the user has a proxy it should be asked, unless the API needs none", func(t *testing.T) {
		g := NewWithT(t)
		withProxy := func(no string) func(*observed) {
			return func(o *observed) {
				payloadExample(o)
				o.hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy:3128", NoProxy: no}}
			}
		}
		in, err := apiProxy(example(t, withProxy("")))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(in.Proxy).To(Equal("http://proxy:3128"))
		for _, no := range []string{"api.example.com", ".example.com", "*"} {
			in, err = apiProxy(example(t, withProxy(no)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(in.Proxy).To(BeEmpty(), no)
		}
	})
	t.Run("When the release selects runc it should not boot RHEL 10", func(t *testing.T) {
		p := payloadPlan(t, func(o *observed) {
			o.userConfig = []nodeconfig.Source{{Name: `ConfigMap "runtime"`, Data: "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\nmetadata: {name: x}\nspec: {containerRuntimeConfig: {defaultRuntime: runc}}"}}
			o.pool.Spec.OSImageStream.Name = "rhel-10"
		})
		c := findCondition(p.conditions, hyperv1.NodePoolValidMachineConfigConditionType)
		NewWithT(t).Expect(c.Message).To(ContainSubstring(`ConfigMap "runtime" selects runc, which rhel-10 does not have`))
	})
}
