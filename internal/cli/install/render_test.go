package install

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/cli/output"
)

// resources are the options of most cases: CRDs have golden files of their own, in config.
func resources(change func(*Options)) Options {
	o := NewOptions()
	o.Scope = ScopeResources
	o.Image = "registry.example.com/hypershift/operator:1.0"
	if change != nil {
		change(&o)
	}
	return o
}

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		render  RenderOptions
		golden  string
	}{
		"When nothing but the image is given it should render the minimal operator": {
			options: resources(nil),
			golden:  "default.yaml",
		},
		"When every option is given it should render all of them": {
			options: resources(func(o *Options) {
				o.Namespace = "operators"
				o.PullSecret = []byte(`{"auths":{"registry.example.com":{"auth":"c2VjcmV0"}}}`)
				o.TechPreview, o.AdminRBAC, o.CIDebugOutput = true, true, true
				o.CertRotation = time.Hour
				o.RegistryOverride = map[string]string{"quay.io": "mirror.example.com/quay", "docker.io": "mirror.example.com/docker"}
				o.OperatorEnv = map[string]string{"B": "2", "A": "1"}
			}),
			golden: "full.yaml",
		},
		"When it is for developers it should have no operator Pod": {
			options: resources(func(o *Options) { o.Development = true; o.OpenShift = true }),
			golden:  "development.yaml",
		},
		"When a template is asked for it should have parameters instead of values": {
			options: resources(nil),
			render:  RenderOptions{Template: true},
			golden:  "template.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			var first, second bytes.Buffer
			g.Expect(Render(tc.options, tc.render, &first)).To(Succeed())
			g.Expect(Render(tc.options, tc.render, &second)).To(Succeed())
			g.Expect(second.String()).To(Equal(first.String()), "rendering twice gives the same bytes")
			clitest.Golden(t, tc.golden, first.String())
		})
	}
}

func TestRenderLeavesOutSecrets(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	o := resources(func(o *Options) { o.PullSecret = []byte(`{"auths":{"r":{"auth":"aHVudGVyMg"}}}`) })
	var out bytes.Buffer
	g.Expect(Render(o, RenderOptions{Format: output.JSON}, &out)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring(redacted))
	g.Expect(out.String()).NotTo(ContainSubstring("ImF1dGhzI"), "the start of the secret in base64")
	out.Reset()
	g.Expect(Render(o, RenderOptions{Sensitive: true}, &out)).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring(".dockerconfigjson: ey"))
}

func TestScopes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	o := resources(nil)
	kinds := func(scope string) (crds, others int) {
		o.Scope = scope
		objs, err := Objects(o)
		g.Expect(err).NotTo(HaveOccurred())
		for i, obj := range objs {
			if _, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
				g.Expect(others).To(BeZero(), "CRD %d behind something that isn't one", i)
				crds++
			} else {
				others++
			}
		}
		return crds, others
	}
	crds, others := kinds(ScopeAll)
	g.Expect(crds).To(BeNumerically(">", 20))
	g.Expect(others).To(BeNumerically(">", 5))
	onlyCRDs, none := kinds(ScopeCRDs)
	g.Expect(onlyCRDs).To(Equal(crds))
	g.Expect(none).To(BeZero())
	none, onlyOthers := kinds(ScopeResources)
	g.Expect(onlyOthers).To(Equal(others))
	g.Expect(none).To(BeZero())
}

func TestSplitTag(t *testing.T) {
	for image, want := range map[string][2]string{
		"registry:5000/repo:tag": {"registry:5000/repo", "tag"},
		"registry:5000/repo":     {"registry:5000/repo", "latest"},
		"repo:tag":               {"repo", "tag"},
	} {
		repo, tag := splitTag(image)
		NewWithT(t).Expect([2]string{repo, tag}).To(Equal(want))
	}
}
