package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
				o.TechPreview, o.AdminRBAC, o.CIDebugOutput, o.SizeTagging, o.SharedIngress, o.AuditLogs = true, true, true, true, true, true
				o.SharedGateway = "infra/public"
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
		"When the web console is asked for it should have one that reads no Secrets": {
			options: resources(func(o *Options) { o.Console = true; o.PrivateCAPI = CAPIStandard }),
			golden:  "console.yaml",
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

// The parameter of a template is the number of the operator's Pods. Each other Deployment has a number of its own.
func TestTemplateReplicas(t *testing.T) {
	g := NewWithT(t)
	o := resources(func(o *Options) {
		o.SharedIngress, o.PackageOperator, o.Console, o.Replicas = true, true, true, 2
		o.ExternalDNS.Provider, o.ExternalDNS.DomainFilter, o.ExternalDNS.GoogleProject = dnsGoogle, "ext.example.com", "project"
	})
	want := map[string]any{}
	for _, obj := range Resources(o) {
		if d, ok := obj.(*appsv1.Deployment); ok {
			want[d.Name] = float64(*d.Spec.Replicas)
		}
	}
	g.Expect(want).To(And(HaveKeyWithValue(sharedIngressName, float64(2)), HaveKeyWithValue(externalDNSName, float64(1)), HaveKey(packageManagerName)))
	want[operatorName] = "${{OPERATOR_REPLICAS}}"

	var out bytes.Buffer
	g.Expect(Render(o, RenderOptions{Format: output.YAML, Template: true}, &out)).To(Succeed())
	template := struct {
		Objects []struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Replicas any }
		}
		Parameters []struct{ Name, Value string }
	}{}
	g.Expect(yaml.Unmarshal(out.Bytes(), &template)).To(Succeed())
	got := map[string]any{}
	for _, obj := range template.Objects {
		if obj.Kind == "Deployment" {
			got[obj.Metadata.Name] = obj.Spec.Replicas
		}
	}
	g.Expect(got).To(Equal(want))
	g.Expect(template.Parameters).To(ContainElement(struct{ Name, Value string }{"OPERATOR_REPLICAS", "2"}))
}

func TestScopes(t *testing.T) {
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

// What Helm makes of a chart is judged in test/helm.
func TestChart(t *testing.T) {
	g := NewWithT(t)
	o := resources(func(o *Options) {
		o.Monitoring.Platform, o.Monitoring.SLOAlerts = MonitorAll, true
		// Both operators have a namespace, and a pull secret there.
		o.PackageOperator, o.PullSecret = true, []byte(`{"auths":{}}`)
		o.Platforms = []string{"None", "Local"}
	})
	files, err := Chart(o)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := Chart(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(files), "the same options give the same bytes")
	values := map[string]any{}
	g.Expect(yaml.UnmarshalStrict(files["values.yaml"], &values)).To(Succeed())
	g.Expect(values).To(And(HaveKeyWithValue("image", o.Image), HaveKeyWithValue("platforms", ConsistOf("None", "Local")), HaveKeyWithValue("replicas", BeEquivalentTo(2)),
		HaveKeyWithValue("packageOperator", HaveKeyWithValue("enabled", true)), HaveKeyWithValue("monitoring", HaveKeyWithValue("sloAlerts", true))))
	g.Expect(json.Valid(files["values.schema.json"])).To(BeTrue())
	for name, content := range files {
		for _, standIn := range []string{"chart-", "CHART_", fmt.Sprint(replicasStandIn)} {
			g.Expect(strings.ReplaceAll(string(content), "helm.sh/chart-", "")).NotTo(ContainSubstring(standIn), name)
		}
		if strings.HasPrefix(name, "templates/") || strings.HasPrefix(name, "values") {
			g.Expect(string(content)).NotTo(MatchRegexp(`@[a-zA-Z]+@`), name)
		}
	}
	g.Expect(files).To(HaveKey("templates/secret-pull-secret-in-" + PackageOperatorNamespace + ".yaml"))
	g.Expect(string(files["templates/namespace-package-operator-system.yaml"])).To(HavePrefix("{{- if .Values.packageOperator.enabled }}\n"))
	g.Expect(string(files["templates/poddisruptionbudget-package-operator-manager.yaml"])).To(HavePrefix("{{- if and (.Values.packageOperator.enabled) (gt (int .Values.replicas) 1) }}\n"))

	o.Scope = ScopeCRDs
	all, err := CRDs(o)
	g.Expect(err).NotTo(HaveOccurred())
	crds := slices.DeleteFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return !strings.HasPrefix(name, "crds/") })
	g.Expect(crds).To(HaveLen(len(all)))

	dir := filepath.Join(t.TempDir(), "chart")
	o.Scope = ScopeAll
	g.Expect(writeChart(o, dir)).To(Succeed())
	g.Expect(filepath.Join(dir, "Chart.yaml")).To(BeARegularFile())
	g.Expect(writeChart(o, "")).To(MatchError(ContainSubstring("--output-dir")))
}

// A toggle brings objects, and leaves the others as they are: otherwise the chart could not have both.
func TestChartToggles(t *testing.T) {
	g := NewWithT(t)
	none := resources(nil)
	all := none
	for _, toggle := range chartToggles {
		toggle.on(&all)
	}
	with := map[string]client.Object{}
	for _, obj := range Resources(all) {
		with[fmt.Sprintf("%T ", obj)+connect.Describe(obj)] = obj
	}
	for _, obj := range Resources(none) {
		key := fmt.Sprintf("%T ", obj) + connect.Describe(obj)
		g.Expect(with).To(HaveKey(key))
		g.Expect(with[key]).To(BeComparableTo(obj), key)
	}
}

func TestLimitedCRDs(t *testing.T) {
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
