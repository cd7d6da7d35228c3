package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

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
				o.TrustBundle = []byte("certificates")
				o.ImageEnv = map[string]string{"IMAGE_CLUSTER_API": "registry.example.com/capi:1"}
				o.Platforms = []string{"AWS", "Azure"}
				o.OperatorEnv = map[string]string{"B": "2", "A": "1"}
			}),
			golden: "full.yaml",
		},
		"When it is for developers it should have no operator Pod": {
			options: resources(func(o *Options) { o.Development = true; o.OpenShift = true }),
			golden:  "development.yaml",
		},
		"When packages are asked for it should install their operator, too": {
			options: resources(func(o *Options) { o.PackageOperator = true; o.PullSecret = []byte(`{"auths":{}}`) }),
			golden:  "package-operator.yaml",
		},
		"When metrics are to be secure it should have a right to read them, and probes that need none": {
			options: resources(func(o *Options) {
				o.Metrics, o.PackageOperator = Metrics{Secure: true, CertSecret: "metrics-cert"}, true
				o.PrivateCAPI, o.Monitoring.Objects = CAPIStandard, true
			}),
			golden: "metrics-secure.yaml",
		},
		"When standard types of Cluster API are asked for it should render no proxy": {
			options: resources(func(o *Options) { o.PrivateCAPI = CAPIStandard }),
			golden:  "standard-capi.yaml",
		},
		"When there are hosted clusters from before private types it should render an operator for them, too": {
			options: resources(func(o *Options) { o.capi = &capiChoice{Private: true, Legacy: true} }),
			golden:  "legacy-capi.yaml",
		},
		"When the operator is to work in AWS it should have credentials for it": {
			options: resources(func(o *Options) {
				o.PrivateCAPI = CAPIStandard
				o.AWS.Bucket, o.AWS.BucketRegion, o.AWS.BucketAccess.RoleARN = "documents", "eu-west-1", "arn:aws:iam::123456789012:role/hypershift-operator-oidc-s3"
				o.AWS.Private, o.AWS.PrivateRegion, o.AWS.PrivateAccess.RoleARN = true, "eu-west-1", "arn:aws:iam::123456789012:role/hypershift-operator-ec2"
			}),
			golden: "aws.yaml",
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

// Parts have golden files of their own, which other rights of the operator don't change.
func TestRenderParts(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		part    func(Options) []client.Object
		golden  string
	}{
		"When monitoring is asked for it should tell Prometheus of everything": {
			options: resources(func(o *Options) { o.Monitoring.Objects, o.Monitoring.SLOAlerts, o.PackageOperator = true, true, true }),
			part:    monitoringObjects,
			golden:  "monitoring.yaml",
		},
		"When metrics are secure it should tell Prometheus to show its token": {
			options: resources(func(o *Options) { o.Monitoring.Objects, o.PackageOperator, o.Metrics.Secure = true, true, true }),
			part: func(o Options) (monitors []client.Object) {
				for _, obj := range monitoringObjects(o) {
					if obj.GetObjectKind().GroupVersionKind().Kind == "ServiceMonitor" {
						monitors = append(monitors, obj)
					}
				}
				return monitors
			},
			golden: "monitoring-metrics-secure.yaml",
		},
		"When Cluster API's objects are private it should tell Prometheus of the proxy and what can be wrong with it": {
			options: resources(func(o *Options) { o.Monitoring.Objects, o.capi = true, &capiChoice{Private: true} }),
			part:    capiMonitoring,
			golden:  "monitoring-private-capi.yaml",
		},
		"When AWS keeps the names it should install external-dns with its credentials": {
			options: resources(func(o *Options) {
				o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.Credentials = dnsAWS, "ext.example.com", []byte("[default]")
				o.Monitoring.Objects, o.OpenShift = true, true
			}),
			part:   externalDNS,
			golden: "external-dns-aws.yaml",
		},
		"When Google keeps the names it should need no credentials": {
			options: resources(func(o *Options) {
				o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.GoogleProject = dnsGoogle, "ext.example.com", "project"
			}),
			part:   externalDNS,
			golden: "external-dns-google.yaml",
		},
		"When Azure keeps the names it should use the Secret that is there": {
			options: resources(func(o *Options) {
				o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.Secret, o.ExternalDNS.TXTOwnerID = dnsAzure, "ext.example.com", "azure", "me"
			}),
			part:   externalDNS,
			golden: "external-dns-azure.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.Expect(tc.options.Validate()).To(Succeed())
			var objs []map[string]any
			for _, obj := range tc.part(tc.options) {
				u, err := connect.Unstructured(connect.Scheme(), obj)
				g.Expect(err).NotTo(HaveOccurred())
				connect.RedactSecret(u, redacted)
				objs = append(objs, u.Object)
			}
			var out bytes.Buffer
			g.Expect(output.Format(output.YAML).Objects(&out, objs)).To(Succeed())
			clitest.Golden(t, tc.golden, out.String())
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

// The API server has the last word on what is valid. Kinds of the Prometheus operator aren't served in tests.
func TestResourcesAreAccepted(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	o := resources(func(o *Options) {
		o.Namespace = env.Namespace(t)
		o.TrustBundle, o.PullSecret = []byte("certificates"), []byte(`{"auths":{}}`)
		o.PackageOperator = true
		o.AdminRBAC, o.Monitoring.Platform, o.OpenShift = true, MonitorAll, true
		o.Monitoring.Objects, o.Metrics = true, Metrics{Secure: true, CertSecret: "metrics-cert"}
		o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.Credentials = dnsAWS, "ext.example.com", []byte("x")
	})
	for _, obj := range Resources(o) {
		u, err := connect.Unstructured(connect.Scheme(), obj)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if u.GetKind() == "Namespace" || u.GroupVersionKind().Group == monitoringGroup {
			continue
		}
		if u.GetNamespace() != "" {
			u.SetNamespace(o.Namespace) // the others aren't there
		}
		t.Run("When "+u.GetKind()+" "+u.GetName()+" is applied it should be accepted", func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), u, client.DryRunAll, client.FieldValidation("Strict"))).To(Succeed())
		})
	}
}

// A chart that is rendered with its own values must be what install applies, in another order.
func TestChart(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	o := resources(func(o *Options) {
		o.Namespace = "operators"
		o.Monitoring.Platform, o.Monitoring.SLOAlerts, o.Monitoring.Objects = MonitorAll, true, true
		o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.Secret = dnsAWS, "ext.example.com", "secret"
		// Both have a namespace, and a pull secret there.
		o.PackageOperator, o.PullSecret = true, []byte(`{"auths":{}}`)
	})
	files, err := chart(o)
	g.Expect(err).NotTo(HaveOccurred())
	values := map[string]any{}
	g.Expect(yaml.Unmarshal(files["values.yaml"], &values)).To(Succeed())
	got, want := map[string]any{}, map[string]any{}
	key := func(obj map[string]any) string {
		meta := obj["metadata"].(map[string]any)
		return fmt.Sprint(obj["kind"], "/", meta["namespace"], "/", meta["name"])
	}
	render := func(name string, content []byte) map[string]any {
		functions := template.FuncMap{"toJson": func(v any) (string, error) { // Helm's
			raw, err := json.Marshal(v)
			return string(raw), err
		}}
		var out bytes.Buffer
		g.Expect(template.Must(template.New(name).Funcs(functions).Parse(string(content))).Execute(&out, map[string]any{
			"Values": values, "Release": map[string]any{"Namespace": "operators"},
		})).To(Succeed(), name)
		obj := map[string]any{}
		g.Expect(yaml.Unmarshal(out.Bytes(), &obj)).To(Succeed(), out.String())
		return obj
	}
	pod := func(obj map[string]any) map[string]any {
		out, _, err := unstructured.NestedFieldNoCopy(obj, "spec", "template", "spec")
		g.Expect(err).NotTo(HaveOccurred())
		return out.(map[string]any)
	}
	crds := 0
	for name, content := range files {
		switch {
		case strings.HasPrefix(name, "crds/"):
			crds++
		case strings.HasPrefix(name, "templates/"):
			obj := render(name, content)
			if obj["kind"] == "Deployment" {
				for _, field := range []string{"nodeSelector", "tolerations", "imagePullSecrets"} {
					g.Expect(pod(obj)).To(HaveKeyWithValue(field, BeEmpty()), name)
					delete(pod(obj), field)
				}
			}
			got[key(obj)] = obj
		}
	}
	for _, obj := range Resources(o) {
		u, err := connect.Unstructured(connect.Scheme(), obj)
		g.Expect(err).NotTo(HaveOccurred())
		if u.GetKind() != "Namespace" || u.GetName() != o.Namespace {
			raw, err := yaml.Marshal(u.Object)
			g.Expect(err).NotTo(HaveOccurred())
			plain := map[string]any{}
			g.Expect(yaml.Unmarshal(raw, &plain)).To(Succeed())
			want[key(plain)] = plain
		}
	}
	g.Expect(got).To(BeComparableTo(want))
	values["nodeSelector"], values["metricsSet"] = map[string]string{"pool": "infra"}, "SRE"
	values["tolerations"], values["imagePullSecrets"] = []any{map[string]string{"key": "infra"}}, []any{map[string]string{"name": "pull"}}
	values["resources"] = map[string]any{"limits": map[string]string{"memory": "4Gi"}}
	operator := pod(render("operator", files["templates/deployment-operator.yaml"]))
	g.Expect(operator).To(And(HaveKeyWithValue("nodeSelector", HaveKeyWithValue("pool", "infra")), HaveKeyWithValue("tolerations", HaveLen(1)), HaveKeyWithValue("imagePullSecrets", HaveLen(1))))
	program := operator["containers"].([]any)[0].(map[string]any)
	g.Expect(program["resources"]).To(Equal(map[string]any{"limits": map[string]any{"memory": "4Gi"}}))
	g.Expect(program["env"]).To(ContainElement(map[string]any{"name": "METRICS_SET", "value": "SRE"}))

	o.Scope = ScopeCRDs
	all, err := CRDs(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(crds).To(Equal(len(all)))

	dir := filepath.Join(t.TempDir(), "chart")
	o.Scope = ScopeAll
	g.Expect(writeChart(o, dir)).To(Succeed())
	g.Expect(filepath.Join(dir, "Chart.yaml")).To(BeARegularFile())
	g.Expect(writeChart(o, "")).To(MatchError(ContainSubstring("--output-dir")))
}

func TestLimitedCRDs(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	o := NewOptions()
	o.TechPreview = true
	all, err := CRDs(o)
	g.Expect(err).NotTo(HaveOccurred())
	o.Platforms = []string{"Azure"}
	some, err := CRDs(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(all)-len(some)).To(Equal(29), "those of AWS and GCP, and of the providers of all platforms but Azure")
	for _, crd := range some {
		g.Expect(crd.GetName()).NotTo(HavePrefix("aws"))
	}
}
