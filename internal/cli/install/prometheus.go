package install

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/scraping"
	"hcp.internal/platform/internal/monitoring"
)

// grafanaLabel is what Grafana's sidecar looks for, as kube-prometheus-stack sets it up.
const grafanaLabel = "grafana_dashboard"

// runbooks is where alerts lead unless somebody says where the page is served.
const runbooks = "docs/alerts.md"

func (m *Monitoring) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&m.Dashboards, "monitoring-dashboards", m.Dashboards, "Install Grafana dashboards: ConfigMaps with the label "+grafanaLabel+"=1 in the operator's namespace")
	fs.StringVar(&m.Namespace, "prometheus-namespace", m.Namespace, "Namespace of the Prometheus that scrapes metrics: it may discover its targets, and network policies of control planes admit it (default: openshift-monitoring, and namespaces labelled network.openshift.io/policy-group=monitoring)")
	fs.StringVar(&m.Account, "prometheus-service-account", m.Account, "ServiceAccount of that Prometheus (default: prometheus-k8s)")
	fs.StringToStringVar(&m.Labels, "monitor-labels", m.Labels, "Labels of ServiceMonitors, PodMonitors and PrometheusRules, as key=value,…; kube-prometheus-stack selects those with release=NAME of its Helm release")
	fs.StringVar(&m.RunbookURL, "alert-runbook-url", m.RunbookURL, "Page that alerts link to, with their name as anchor (default: "+runbooks+" of the repository)")
}

func (m Monitoring) validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(m.Namespace); m.Namespace != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--prometheus-namespace %q: %s", m.Namespace, strings.Join(problems, "; ")))
	}
	if problems := validation.IsDNS1123Subdomain(m.Account); m.Account != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--prometheus-service-account %q: %s", m.Account, strings.Join(problems, "; ")))
	}
	if m.Account != "" && m.Namespace == "" {
		errs = append(errs, errors.New("--prometheus-service-account: name its namespace, too, by --prometheus-namespace"))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(m.Labels[key])...)
		if len(problems) > 0 {
			errs = append(errs, fmt.Errorf("--monitor-labels %q: %s", key+"="+m.Labels[key], strings.Join(problems, "; ")))
		}
	}
	if u, err := url.Parse(m.RunbookURL); err != nil || m.RunbookURL != "" && (u.Scheme == "" || u.Host == "" || u.Fragment != "") {
		errs = append(errs, fmt.Errorf("--alert-runbook-url %q: must be a URL like https://example.com/docs/alerts without #", m.RunbookURL))
	}
	return errors.Join(errs...)
}

// env tells the operator, which hands it on to those of control planes.
func (m Monitoring) env() (env []corev1.EnvVar) {
	if m.Namespace != "" {
		env = append(env, corev1.EnvVar{Name: scraping.EnvNamespace, Value: m.Namespace})
	}
	if len(m.Labels) > 0 {
		env = append(env, corev1.EnvVar{Name: scraping.EnvLabels, Value: scraping.FormatLabels(m.Labels)})
	}
	return env
}

// leadToRunbooks adds to the alerts of a PrometheusRule where somebody reads what to do.
func (m Monitoring) leadToRunbooks(spec map[string]any) {
	page := m.RunbookURL
	if page == "" {
		page = runbooks
	}
	for _, group := range spec["groups"].([]any) {
		for _, r := range group.(map[string]any)["rules"].([]any) {
			rule := r.(map[string]any)
			if name, ok := rule["alert"].(string); ok {
				rule["annotations"].(map[string]any)["runbook_url"] = page + "#" + strings.ToLower(name)
			}
		}
	}
}

// dashboards are ConfigMaps that Grafana's sidecar finds.
func dashboards(o Options) (objs []client.Object) {
	if !o.Monitoring.Dashboards {
		return nil
	}
	all := monitoring.Dashboards()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		raw, err := all[name].JSON()
		if err != nil {
			panic(err) // of constants
		}
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "hypershift-dashboard-" + name, Namespace: o.Namespace, Labels: map[string]string{grafanaLabel: "1"}},
			Data:       map[string]string{name + ".json": string(raw)},
		})
	}
	return objs
}

func prometheusCommand(o *Options, files *fileFlags) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "prometheus",
		Short: "Write the files for a Prometheus without its operator",
		Long: `Write the files for a Prometheus that is configured with files, without the Prometheus operator: prometheus.yml with the scrape configuration,
rules.yml with recording rules and alerts, and Grafana dashboards in the folder dashboards.

The scrape configuration discovers the operators and control-plane programs through the management cluster's API, so Prometheus' ServiceAccount
needs list and watch for pods in all namespaces. Pass --prometheus-namespace to install, so that network policies admit Prometheus.`,
		Example: `  hypershift install prometheus --output-dir monitoring
  hypershift install prometheus --namespace operators --package-operator --alert-runbook-url https://example.com/docs/alerts --output-dir monitoring`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := files.load(cmd.ErrOrStderr(), o); err != nil {
				return err
			}
			if err := writePrometheus(*o, dir); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "Folder to write to; it is made when it doesn't exist (required)")
	return cmd
}

func writePrometheus(o Options, dir string) error {
	if dir == "" {
		return errors.New("--output-dir is required")
	}
	if err := o.Monitoring.validate(); err != nil {
		return err
	}
	files, err := prometheusFiles(o)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("--output-dir: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { // for everybody: there is no secret in it
			return fmt.Errorf("--output-dir: %w", err)
		}
	}
	return nil
}

// prometheusFiles are the files by their paths in the folder.
func prometheusFiles(o Options) (map[string][]byte, error) {
	if o.Metrics.Secure && o.Metrics.CertSecret == "" {
		return nil, errors.New("--metrics-secure: nobody can verify the operators' self-made certificates; name one with --metrics-cert-secret")
	}
	o.Monitoring.Objects = true
	o = o.offlineCAPI()
	var groups []any
	for _, obj := range append(monitoringObjects(o), capiMonitoring(o)...) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u.GetKind() != "PrometheusRule" {
			continue
		}
		list, _, err := unstructured.NestedSlice(u.Object, "spec", "groups")
		if err != nil {
			return nil, fmt.Errorf("reading PrometheusRule %s: %w", u.GetName(), err)
		}
		groups = append(groups, list...)
	}
	scrape := monitoring.Scrape{Namespace: o.Namespace, Secure: o.Metrics.Secure}
	if o.PackageOperator {
		scrape.PackageNamespace = PackageOperatorNamespace
	}
	files := map[string][]byte{}
	for name, content := range map[string]any{"prometheus.yml": scrape.Config("rules.yml"), "rules.yml": map[string]any{"groups": groups}} {
		raw, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
		files[name] = raw
	}
	for name, d := range monitoring.Dashboards() {
		raw, err := d.JSON()
		if err != nil {
			return nil, err
		}
		files["dashboards/"+name+".json"] = raw
	}
	return files, nil
}
