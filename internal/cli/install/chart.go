package install

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"path"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/version"
)

// chartFiles are parts of the chart that no object is made of. What stands between two @ in them is filled in.
//
//go:embed chartfiles
var chartFiles embed.FS

// Stand-ins for what a chart's values decide. They are valid where they stand, so that the objects can be made and encoded as
// usual, occur nowhere else, and none begins as another.
const (
	chartNamespace   = "chart-release-namespace"
	chartImage       = "chart-values-image"
	chartPullPolicy  = "chart-values-pull-policy"
	chartMetrics     = "chart-values-metrics-set"
	chartNodes       = "chart-values-node-selector"
	chartTolerated   = "chart-values-tolerations"
	chartAffinity    = "chart-values-affinity"
	chartPulls       = "chart-values-pull-secrets"
	chartResources   = "chart-values-resources"
	chartPackageRes  = "chart-values-package-operator-resources"
	chartPlatforms   = "chart-values-platforms"
	chartEnv         = "CHART_VALUES_EXTRA_ENV"
	chartOverrides   = "chart-values-registry"
	chartSignatures  = "chart-values-signature-policy"
	replicasStandIn  = 987654321 // no number of ours
	chartReplicas    = 2         // what a chart has unless told otherwise
	manyReplicas     = "gt (int .Values.replicas) 1"
	chartKubeVersion = ">=1.30.0-0" // which serves all that the chart holds
)

// chartValues are what a chart's stand-ins become. What is a map or list is written as JSON, which YAML has in one line.
var chartValues = map[string]string{
	chartNamespace: "{{ .Release.Namespace }}", chartImage: "{{ .Values.image }}", chartPullPolicy: "{{ .Values.imagePullPolicy }}",
	chartMetrics: "{{ .Values.metricsSet | toJson }}", chartNodes: "{{ .Values.nodeSelector | toJson }}", chartTolerated: "{{ .Values.tolerations | toJson }}",
	chartAffinity: "{{ .Values.affinity | toJson }}", chartPulls: "{{ .Values.imagePullSecrets | toJson }}",
	chartResources: "{{ .Values.resources | toJson }}", chartPackageRes: "{{ .Values.packageOperator.resources | toJson }}",
	chartSignatures:             "{{ toYaml .Values.imageSignaturePolicy | toJson }}",
	fmt.Sprint(replicasStandIn): "{{ .Values.replicas }}",
}

// chartBlocks are what lines with a stand-in become that are there only if a value is. The submatch is what the line begins with.
var chartBlocks = []struct {
	line *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`(?m)^( *)- name: PLATFORMS_INSTALLED\n *value: ` + chartPlatforms + `\n`),
		"$1{{- if .Values.platforms }}\n$1- name: PLATFORMS_INSTALLED\n$1  value: {{ join \",\" .Values.platforms | quote }}\n$1{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- name: ` + chartEnv + `\n(?: *value: .*\n)?`), "$1{{- range .Values.extraEnv }}\n$1- {{ toJson . }}\n$1{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- --(registry|image-prefix)-overrides=` + chartOverrides + `=` + chartOverrides + `\n`),
		"$1{{- $$pairs := list }}\n$1{{- range $$from, $$to := .Values.registryOverrides }}{{ $$pairs = append $$pairs (printf \"%s=%s\" $$from $$to) }}{{ end }}\n" +
			"$1{{- with $$pairs }}\n$1- {{ printf \"--${2}-overrides=%s\" (join \",\" .) | quote }}\n$1{{- end }}\n"},
	// What makes a Pod heed the policy of signatures. The hash is that of requireSignatures; that of certificates, which are no value, stands before it if there are any.
	{regexp.MustCompile(`(?m)^( *)annotations:\n( *` + regexp.QuoteMeta(trustBundleHash) + `: .*\n) *` + regexp.QuoteMeta(signaturePolicyHash) + `: .*\n`),
		"${1}annotations:\n$2$1{{- with .Values.imageSignaturePolicy }}\n$1  " + signaturePolicyHash + ": {{ toYaml . | sha256sum | trunc 16 | quote }}\n$1{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)annotations:\n *` + regexp.QuoteMeta(signaturePolicyHash) + `: .*\n`),
		"$1{{- with .Values.imageSignaturePolicy }}\n${1}annotations:\n$1  " + signaturePolicyHash + ": {{ toYaml . | sha256sum | trunc 16 | quote }}\n$1{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)(- --image-signature-policy=.*\n)`), withSignatures},
	{regexp.MustCompile(`(?m)^( *)(- mountPath: ` + signaturePolicyFolder + `\n *name: .*\n *readOnly: true\n)`), withSignatures},
	{regexp.MustCompile(`(?m)^( *)(- configMap:\n *name: ` + signaturePolicyName + `\n *name: ` + signaturePolicyName + `\n)`), withSignatures},
}

// withSignatures keeps an item of a list only where there is a policy of signatures.
const withSignatures = "$1{{- if .Values.imageSignaturePolicy }}\n$1$2$1{{- end }}\n"

// chartToggles are values that decide whether objects are there at all.
var chartToggles = []struct {
	value string
	on    func(*Options)
}{
	{".Values.packageOperator.enabled", func(o *Options) { o.PackageOperator = true }},
	{".Values.console.enabled", func(o *Options) { o.Console = true }},
	{".Values.monitoring.enabled", func(o *Options) { o.Monitoring.Objects = true }},
	{".Values.monitoring.sloAlerts", func(o *Options) { o.Monitoring.SLOAlerts = true }},
	{".Values.monitoring.dashboards", func(o *Options) { o.Monitoring.Dashboards = true }},
}

// Chart returns the files of a Helm chart by their paths in it. The same options give the same bytes.
func Chart(o Options) (map[string][]byte, error) {
	files, err := chartTexts(o)
	if err != nil {
		return nil, err
	}
	crds, err := CRDs(withPackages(o))
	if err != nil {
		return nil, err
	}
	scheme := connect.Scheme()
	for _, crd := range crds {
		u, err := connect.Unstructured(scheme, crd)
		if err != nil {
			return nil, err
		}
		if files["crds/"+crd.GetName()+".yaml"], err = yaml.Marshal(u.Object); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", connect.Describe(u), err)
		}
	}
	objs, err := chartObjects(o)
	if err != nil {
		return nil, err
	}
	for _, obj := range objs {
		name := "templates/" + strings.ToLower(obj.GetKind()) + "-" + strings.ReplaceAll(obj.GetName(), ":", "-") + ".yaml"
		if ns := obj.GetNamespace(); files[name] != nil && ns != "" { // another namespace has one of the same name
			name = strings.TrimSuffix(name, ".yaml") + "-in-" + ns + ".yaml"
		}
		if files[name], err = chartTemplate(obj.Unstructured, obj.when); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// withPackages are options of the definitions: those of packages are there whether or not their operator is, so that a value can bring it later.
func withPackages(o Options) Options {
	o.Scope, o.PackageOperator = ScopeAll, true
	return o
}

// chartObject is an object, and the values that it is there for.
type chartObject struct {
	*unstructured.Unstructured
	when []string
}

// chartObjects returns all objects that some values ask for. Each is there when all of the toggles are on without which it isn't.
func chartObjects(o Options) ([]chartObject, error) {
	o.Scope, o.Namespace, o.Image, o.ImagePullPolicy, o.MetricsSet = ScopeResources, chartNamespace, chartImage, chartPullPolicy, chartMetrics
	o.Replicas, o.Platforms = chartReplicas, []string{chartPlatforms}
	o.RegistryOverride, o.SignaturePolicy = map[string]string{chartOverrides: chartOverrides}, []byte(chartSignatures)
	o.OperatorEnv = maps.Clone(o.OperatorEnv)
	if o.OperatorEnv == nil {
		o.OperatorEnv = map[string]string{}
	}
	o.OperatorEnv[chartEnv] = ""
	// Flags that are values of the chart only decide what these are at first.
	o.Console = false
	o.PackageOperator, o.Monitoring.Objects, o.Monitoring.SLOAlerts, o.Monitoring.Dashboards = false, false, false, false

	scheme := connect.Scheme()
	var out []chartObject
	seen := map[string]bool{}
	subsets := make([]uint, 0, 1<<len(chartToggles))
	for subset := range uint(1 << len(chartToggles)) {
		subsets = append(subsets, subset)
	}
	slices.SortStableFunc(subsets, func(a, b uint) int { return bits.OnesCount(a) - bits.OnesCount(b) })
	for _, subset := range subsets {
		with, when := o, []string{}
		for i, toggle := range chartToggles {
			if subset&(1<<i) != 0 {
				toggle.on(&with)
				when = append(when, toggle.value)
			}
		}
		for _, obj := range Resources(with) {
			u, err := chartUnstructured(scheme, obj)
			if err != nil {
				return nil, err
			}
			key := connect.Describe(u)
			if seen[key] || u.GetKind() == "Namespace" && u.GetName() == chartNamespace { // Helm makes it
				continue
			}
			seen[key] = true
			conditions := slices.Clone(when)
			switch {
			case u.GetKind() == "PodDisruptionBudget":
				conditions = append(conditions, manyReplicas)
			case u.GetKind() == "ConfigMap" && u.GetName() == signaturePolicyName:
				conditions = append(conditions, ".Values.imageSignaturePolicy")
			}
			out = append(out, chartObject{u, conditions})
		}
	}
	return out, nil
}

// chartUnstructured is an object with stand-ins for what values decide of Pods.
func chartUnstructured(scheme *runtime.Scheme, obj client.Object) (*unstructured.Unstructured, error) {
	u, err := connect.Unstructured(scheme, obj)
	if err != nil || u.GetKind() != "Deployment" {
		return u, err
	}
	pod, _, err := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", connect.Describe(u), err)
	}
	pod["nodeSelector"], pod["tolerations"], pod["imagePullSecrets"], pod["affinity"] = chartNodes, chartTolerated, chartPulls, chartAffinity
	if resources := map[string]string{operatorName: chartResources, packageManagerName: chartPackageRes}[u.GetName()]; resources != "" {
		pod["containers"].([]any)[0].(map[string]any)["resources"] = resources // a Deployment of ours
		if err := unstructured.SetNestedField(u.Object, int64(replicasStandIn), "spec", "replicas"); err != nil {
			return nil, fmt.Errorf("changing %s: %w", connect.Describe(u), err)
		}
	}
	if err := unstructured.SetNestedMap(u.Object, pod, "spec", "template", "spec"); err != nil {
		return nil, fmt.Errorf("changing %s: %w", connect.Describe(u), err)
	}
	return u, nil
}

// chartTemplate is an object with references to the chart's values, which is there under conditions.
func chartTemplate(u *unstructured.Unstructured, when []string) ([]byte, error) {
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", connect.Describe(u), err)
	}
	// Braces of ours, as in alerts, must come out as they are.
	raw = bytes.ReplaceAll(raw, []byte("{{"), []byte(`{{ "{{" }}`))
	for _, block := range chartBlocks {
		raw = block.line.ReplaceAll(raw, []byte(block.text))
	}
	for standIn, value := range chartValues {
		raw = bytes.ReplaceAll(raw, []byte(standIn), []byte(value))
	}
	switch len(when) {
	case 0:
		return raw, nil
	case 1:
		return fmt.Appendf(nil, "{{- if %s }}\n%s{{- end }}\n", when[0], raw), nil
	}
	return fmt.Appendf(nil, "{{- if and (%s) }}\n%s{{- end }}\n", strings.Join(when, ") ("), raw), nil
}

// chartTexts returns the files that no object is made of.
func chartTexts(o Options) (map[string][]byte, error) {
	groups, err := chartGroups()
	if err != nil {
		return nil, err
	}
	asked := o.Monitoring.asked()
	o.Replicas = chartReplicas
	signatures := map[string]any{}
	if err := yaml.Unmarshal(o.SignaturePolicy, &signatures); err != nil {
		return nil, fmt.Errorf("reading the policy of signatures: %w", err)
	}
	insert := map[string]any{
		"image": o.Image, "pullPolicy": o.ImagePullPolicy, "resources": container(o).Resources, "platforms": append([]string{}, o.Platforms...),
		"registryOverrides": o.RegistryOverride, "metricsSet": o.MetricsSet, "monitoring": asked, "sloAlerts": o.Monitoring.SLOAlerts,
		"dashboards": o.Monitoring.Dashboards, "packageOperator": o.PackageOperator, "console": o.Console, "packageResources": packageOperatorContainer(o).Resources,
		"platformNames": limitable, "groups": groups, "state": capiStateName, "namespace": o.Namespace, "podSecurity": podSecurity(o), "security": containerSecurity(),
		"signatures": signatures,
	}
	if o.RegistryOverride == nil {
		insert["registryOverrides"] = map[string]string{}
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(insert)) {
		raw, err := json.Marshal(insert[name])
		if err != nil {
			return nil, fmt.Errorf("encoding %s for the chart: %w", name, err)
		}
		pairs = append(pairs, "@"+name+"@", string(raw))
	}
	fill := strings.NewReplacer(append(pairs, "@flags@", crdFlags(o))...)
	files := map[string][]byte{}
	for in, out := range map[string]string{
		"values.yaml": "values.yaml", "values.schema.json": "values.schema.json", "NOTES.txt": "templates/NOTES.txt",
		"crds-upgrade.yaml": "templates/crds-upgrade.yaml", "test.yaml": "templates/tests/operator.yaml",
	} {
		raw, err := chartFiles.ReadFile(path.Join("chartfiles", in))
		if err != nil {
			return nil, fmt.Errorf("reading the chart's %s: %w", in, err)
		}
		files[out] = []byte(fill.Replace(string(raw)))
	}
	raw, err := yaml.Marshal(ChartMetadata())
	files["Chart.yaml"] = raw
	return files, err
}

// ChartMetadata is the content of Chart.yaml.
func ChartMetadata() map[string]any {
	return map[string]any{
		"apiVersion": "v2", "name": ChartName, "type": "application", "version": version.Semver(), "appVersion": version.Semver(), "kubeVersion": chartKubeVersion,
		"description": "Runs Kubernetes clusters whose control planes are pods of this cluster.",
	}
}

// ChartName is the name of the chart.
const ChartName = "hypershift-operator"

// crdFlags are arguments of the Job that brings the definitions up to date, for what is no value.
func crdFlags(o Options) string {
	var b strings.Builder
	add := func(flag string) { fmt.Fprintf(&b, "        - %s\n", flag) }
	if o.PrivateCAPI != CAPIAuto {
		add("--private-capi-types=" + o.PrivateCAPI)
	}
	if o.TechPreview {
		add("--tech-preview-no-upgrade")
	}
	if o.StoredCAPIOnly {
		add("--disable-capi-conversion-webhook")
	}
	return b.String()
}

// chartGroups are the groups of all kinds that an installation may define, sorted.
func chartGroups() ([]string, error) {
	var groups []string
	for _, o := range everyOption(DefaultNamespace) {
		crds, err := CRDs(o)
		if err != nil {
			return nil, err
		}
		for _, crd := range crds {
			groups = append(groups, crd.(*apiextensionsv1.CustomResourceDefinition).Spec.Group) // CRDs returns nothing else
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}
