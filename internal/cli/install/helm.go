package install

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/version"
)

// Stand-ins for what a chart's values decide. They are valid where they stand, so that the objects can be made and encoded as
// usual, occur nowhere else, and none begins as another.
const (
	chartNamespace = "chart-release-namespace"
	chartImage     = "chart-values-image"
	chartMetrics   = "chart-values-metrics-set"
	chartNodes     = "chart-values-node-selector"
	chartTolerated = "chart-values-tolerations"
	chartPulls     = "chart-values-pull-secrets"
	chartResources = "chart-values-resources"
)

// chartValues are what a chart's stand-ins become. What is a map or list is written as JSON, which YAML has in one line.
var chartValues = map[string]string{
	chartNamespace: "{{ .Release.Namespace }}", chartImage: "{{ .Values.image }}", chartMetrics: "{{ .Values.metricsSet | toJson }}",
	chartNodes: "{{ .Values.nodeSelector | toJson }}", chartTolerated: "{{ .Values.tolerations | toJson }}",
	chartPulls: "{{ .Values.imagePullSecrets | toJson }}", chartResources: "{{ .Values.resources | toJson }}",
}

// defaultChartImage is the value image of a chart when nobody names one: where the published tool's chart has the operator.
const defaultChartImage = "quay.io/hypershift/hypershift-operator:latest"

func helmCommand(o *Options, files *fileFlags) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "helm",
		Short: "Write a Helm chart of what install would apply",
		Long: `Write a Helm chart of what install would apply.

Values of the chart are image, replicas, resources and metricsSet of the operator, and nodeSelector, tolerations and imagePullSecrets of all
Deployments; its namespace is that of the Helm release. Everything else is as the flags of this command say. Helm makes the namespace when it is
told to (helm install --create-namespace); label it pod-security.kubernetes.io/enforce=restricted. Without --hypershift-image the value image is
` + defaultChartImage + `: set it to your own when you install the chart.

Helm installs the definitions in the folder crds once, and never upgrades them: before each upgrade of the chart run
kubectl apply --server-side -f crds.`,
		Example: `  hypershift install helm --hypershift-image registry.example.com/hypershift/operator:1.0 --output-dir chart
  helm install hypershift chart --namespace hypershift --create-namespace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.load(o); err != nil {
				return err
			}
			if o.Image == "" {
				o.Image = defaultChartImage
				fmt.Fprintf(cmd.ErrOrStderr(), "the chart's value image is %s: name the image that you built by --hypershift-image, or when you install the chart\n", o.Image)
			}
			if err := writeChart(*o, dir); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "Folder of the chart; it is made when it doesn't exist (required)")
	return cmd
}

// writeChart writes a chart. Files that exist are replaced.
func writeChart(o Options, dir string) error {
	if dir == "" {
		return errors.New("--output-dir is required")
	}
	if err := o.Validate(); err != nil {
		return err
	}
	files, err := chart(o)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
		// Only for the user: it may hold a pull secret.
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
	}
	return nil
}

// chart returns the files of a chart by their paths in it.
func chart(o Options) (map[string][]byte, error) {
	values := map[string]any{
		"image": o.Image, "replicas": *replicas(o), "resources": container(o).Resources, "metricsSet": o.MetricsSet,
		"nodeSelector": map[string]string{}, "tolerations": []any{}, "imagePullSecrets": []any{},
	}
	o.Scope, o.Namespace, o.Image, o.MetricsSet = ScopeAll, chartNamespace, chartImage, chartMetrics
	o.Monitoring.Objects = o.Monitoring.Objects || o.Monitoring.asked()
	crds, err := CRDs(o)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
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
	for _, obj := range Resources(o) {
		u, err := connect.Unstructured(scheme, obj)
		if err != nil {
			return nil, err
		}
		if u.GetKind() == "Namespace" && u.GetName() == chartNamespace {
			continue // Helm makes it
		}
		raw, err := chartTemplate(u)
		if err != nil {
			return nil, err
		}
		name := "templates/" + strings.ToLower(u.GetKind()) + "-" + strings.ReplaceAll(u.GetName(), ":", "-") + ".yaml"
		if ns := u.GetNamespace(); files[name] != nil && ns != "" { // another namespace has one of the same name
			name = strings.TrimSuffix(name, ".yaml") + "-in-" + ns + ".yaml"
		}
		files[name] = raw
	}
	for name, content := range map[string]any{
		"values.yaml": values,
		"Chart.yaml": map[string]any{
			"apiVersion": "v2", "name": "hypershift-operator", "type": "application", "version": version.Semver(), "appVersion": version.Semver(),
			"description": "Runs Kubernetes clusters whose control planes are pods of this cluster.",
		},
	} {
		if files[name], err = yaml.Marshal(content); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
	}
	return files, nil
}

// chartTemplate is an object with references to the chart's values.
func chartTemplate(u *unstructured.Unstructured) ([]byte, error) {
	const replicasStandIn = 987654321 // no number of ours
	if u.GetKind() == "Deployment" {
		pod, _, err := unstructured.NestedMap(u.Object, "spec", "template", "spec")
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", connect.Describe(u), err)
		}
		pod["nodeSelector"], pod["tolerations"], pod["imagePullSecrets"] = chartNodes, chartTolerated, chartPulls
		if u.GetName() == operatorName {
			for _, c := range pod["containers"].([]any) { // a Deployment of ours
				if c := c.(map[string]any); c["name"] == operatorName {
					c["resources"] = chartResources
				}
			}
			_ = unstructured.SetNestedField(u.Object, int64(replicasStandIn), "spec", "replicas")
		}
		if err := unstructured.SetNestedMap(u.Object, pod, "spec", "template", "spec"); err != nil {
			return nil, fmt.Errorf("changing %s: %w", connect.Describe(u), err)
		}
	}
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", connect.Describe(u), err)
	}
	// Braces of ours, as in alerts, must come out as they are.
	raw = bytes.ReplaceAll(raw, []byte("{{"), []byte(`{{ "{{" }}`))
	for standIn, value := range chartValues {
		raw = bytes.ReplaceAll(raw, []byte(standIn), []byte(value))
	}
	return bytes.ReplaceAll(raw, fmt.Append(nil, replicasStandIn), []byte("{{ .Values.replicas }}")), nil
}
