package helm

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
)

// load is the chart as Helm reads it, after a change of its files.
func load(t *testing.T, o install.Options, change func(files map[string][]byte)) *chart.Chart {
	t.Helper()
	files := filesOf(t, o)
	if change != nil {
		change(files)
	}
	var buffered []*loader.BufferedFile
	for name, data := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: data})
	}
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// charts are those that were made, by their options: each takes seconds, most of them for definitions that all have.
var charts struct {
	sync.Mutex
	made map[string]map[string][]byte
}

// filesOf are the files of a chart, for the caller to change.
func filesOf(t *testing.T, o install.Options) map[string][]byte {
	t.Helper()
	charts.Lock()
	defer charts.Unlock()
	key := fmt.Sprintf("%+v", o)
	if charts.made[key] == nil {
		files, err := install.Chart(o)
		if err != nil {
			t.Fatal(err)
		}
		if charts.made == nil {
			charts.made = map[string]map[string][]byte{}
		}
		charts.made[key] = files
	}
	return maps.Clone(charts.made[key])
}

func options() install.Options {
	o := install.NewOptions()
	o.Image = "registry.example.com/hypershift/hypershift:1.0"
	return o
}

// render is what Helm makes of the chart, without hooks, by kind, namespace and name.
func render(c *chart.Chart, values map[string]any) (map[string]map[string]any, error) {
	release := chartutil.ReleaseOptions{Name: "hypershift", Namespace: "hypershift", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]any{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") || strings.Contains(text, "helm.sh/hook") {
			continue
		}
		for _, document := range strings.Split(text, "\n---\n") {
			obj := map[string]any{}
			if err := yaml.Unmarshal([]byte(document), &obj); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if len(obj) > 0 {
				out[key(obj)] = obj
			}
		}
	}
	return out, nil
}

func key(obj map[string]any) string {
	u := unstructured.Unstructured{Object: obj}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// pod is the template of a Deployment's Pods.
func pod(g Gomega, obj map[string]any) map[string]any {
	out, found, err := unstructured.NestedMap(obj, "spec", "template", "spec")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeTrue())
	return out
}

// applied is what install applies, without what a chart doesn't hold.
func applied(g Gomega, o install.Options) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, obj := range install.Resources(o) {
		u, err := connect.Unstructured(connect.Scheme(), obj)
		g.Expect(err).NotTo(HaveOccurred())
		raw, err := yaml.Marshal(u.Object)
		g.Expect(err).NotTo(HaveOccurred())
		plain := map[string]any{}
		g.Expect(yaml.Unmarshal(raw, &plain)).To(Succeed())
		if u.GetKind() != "Namespace" || u.GetName() != o.Namespace {
			out[key(plain)] = plain
		}
	}
	return out
}

func TestRender(t *testing.T) {
	t.Parallel() // beside the life of a chart, which waits for its API server
	for name, change := range map[string]func(*install.Options){
		"When values are as they come it should be what install applies":           func(*install.Options) {},
		"When packages are asked for it should have their operator":                func(o *install.Options) { o.PackageOperator, o.PullSecret = true, []byte(`{"auths":{}}`) },
		"When standard types of Cluster API are asked for it should have no proxy": func(o *install.Options) { o.PrivateCAPI = install.CAPIStandard },
		"When platforms and mirrors are given the operator should be told of them": func(o *install.Options) {
			o.Platforms, o.RegistryOverride = []string{"None", "Local"}, map[string]string{"quay.io": "mirror.example.com/quay", "docker.io": "mirror.example.com/docker"}
		},
		"When signatures are required every operator should know of whom": func(o *install.Options) {
			o.PackageOperator, o.SignaturePolicy = true, []byte(signatures(`{"scope":"*","keys":["`+publicKey+`"]}`))
		},
		"When everything is monitored it should have rules, monitors and dashboards": func(o *install.Options) {
			o.PackageOperator, o.Metrics.Secure = true, true
			o.Monitoring.Platform, o.Monitoring.SLOAlerts, o.Monitoring.Dashboards, o.Monitoring.Objects = install.MonitorAll, true, true, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			o := options()
			change(&o)
			got, err := render(load(t, o, nil), nil)
			g.Expect(err).NotTo(HaveOccurred())
			for _, obj := range got {
				if obj["kind"] != "Deployment" {
					continue
				}
				spec := obj["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
				for _, field := range []string{"nodeSelector", "tolerations", "imagePullSecrets", "affinity"} {
					g.Expect(spec).To(HaveKeyWithValue(field, BeEmpty()))
					delete(spec, field)
				}
			}
			o.Replicas = 2
			g.Expect(got).To(BeComparableTo(applied(g, o)))
		})
	}
}

// publicKey is any, as JSON writes it in a string.
const publicKey = `-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n`

// signatures is a policy of one rule, in the form that Helm gives it.
func signatures(rule string) string {
	raw, err := yaml.JSONToYAML([]byte(`{"rules":[` + rule + `]}`))
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(raw), "\n")
}

func TestValues(t *testing.T) {
	t.Parallel()
	c := load(t, options(), nil)
	t.Run("When values are given every Pod should heed them", func(t *testing.T) {
		g := NewWithT(t)
		got, err := render(c, map[string]any{
			"image": "other/image:2", "imagePullPolicy": "Always", "imagePullSecrets": []any{map[string]any{"name": "pull"}}, "replicas": 3,
			"resources": map[string]any{"limits": map[string]any{"memory": "4Gi"}}, "nodeSelector": map[string]any{"pool": "infra"},
			"tolerations": []any{map[string]any{"key": "infra", "operator": "Exists"}}, "metricsSet": "SRE",
			"affinity":        map[string]any{"nodeAffinity": map[string]any{}},
			"extraEnv":        []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}},
			"packageOperator": map[string]any{"enabled": true},
		})
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"Deployment hypershift/operator", "Deployment package-operator-system/package-operator-manager"} {
			g.Expect(got).To(HaveKey(name))
			g.Expect(got[name]["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(3)))
			spec := pod(g, got[name])
			g.Expect(spec).To(And(HaveKeyWithValue("nodeSelector", HaveKeyWithValue("pool", "infra")), HaveKeyWithValue("tolerations", HaveLen(1)),
				HaveKeyWithValue("imagePullSecrets", HaveLen(1)), HaveKeyWithValue("affinity", HaveKey("nodeAffinity"))))
			g.Expect(spec["containers"].([]any)[0]).To(And(HaveKeyWithValue("image", "other/image:2"), HaveKeyWithValue("imagePullPolicy", "Always")))
		}
		program := pod(g, got["Deployment hypershift/operator"])["containers"].([]any)[0].(map[string]any)
		g.Expect(program["resources"]).To(HaveKeyWithValue("limits", HaveKeyWithValue("memory", "4Gi")))
		g.Expect(program["env"]).To(ContainElements(map[string]any{"name": "METRICS_SET", "value": "SRE"}, map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}))
	})
	t.Run("When a policy of signatures is given by a value it should be as one that install is given", func(t *testing.T) {
		g := NewWithT(t)
		policy := signatures(`{"scope":"*","keys":["` + publicKey + `"]}`)
		value := map[string]any{}
		g.Expect(yaml.Unmarshal([]byte(policy), &value)).To(Succeed())
		o := options()
		o.SignaturePolicy = []byte(policy)
		with, err := render(load(t, o, nil), nil)
		g.Expect(err).NotTo(HaveOccurred())
		got, err := render(c, map[string]any{"imageSignaturePolicy": value})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeComparableTo(with))
		g.Expect(got).To(HaveKey("ConfigMap hypershift/image-signature-policy"))
	})
	t.Run("When there is one Pod no drain should wait for it", func(t *testing.T) {
		g := NewWithT(t)
		got, err := render(c, map[string]any{"replicas": 1})
		g.Expect(err).NotTo(HaveOccurred())
		for name := range got {
			g.Expect(name).NotTo(HavePrefix("PodDisruptionBudget"))
		}
	})
	for name, tc := range map[string]struct {
		values map[string]any
		want   string
	}{
		"When a value is unknown it should be refused":              {map[string]any{"replica": 2}, "replica"},
		"When there are too many Pods it should name the bound":     {map[string]any{"replicas": 50}, "replicas"},
		"When a platform is unknown it should list those there are": {map[string]any{"platforms": []any{"Moon"}}, "KubeVirt"},
		"When a pull secret has no name it should say so":           {map[string]any{"imagePullSecrets": []any{map[string]any{"secret": "x"}}}, "name"},
		"When a policy has a rule without keys it should say so":    {map[string]any{"imageSignaturePolicy": map[string]any{"rules": []any{map[string]any{"scope": "*"}}}}, "keys"},
		"When resources are misspelt it should say so":              {map[string]any{"resources": map[string]any{"limit": map[string]any{}}}, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(c, tc.values)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When values.yaml is read every value should have a comment or a name that says it", func(t *testing.T) {
		NewWithT(t).Expect(bytes.Count(fileOf(c, "values.yaml"), []byte("#"))).To(BeNumerically(">", 10))
	})
}

func fileOf(c *chart.Chart, name string) []byte {
	for _, f := range c.Raw {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}
