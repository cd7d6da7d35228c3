package metricsproxy

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/controlplane/component"
)

// certsDir is where the files are by which the proxy scrapes.
const certsDir = "/etc/metrics-proxy/certs"

const metricsAnnotation = "hypershift.openshift.io/metrics-"

// monitor is a ServiceMonitor or a PodMonitor with its first endpoint.
type monitor struct {
	name     string
	pods     bool
	selector map[string]string
	endpoint map[string]any
	labels   map[string]string // as the metrics are to be labelled: job, namespace, service, endpoint
}

// monitored are the monitors of the control plane, by name; those of a management cluster without such kinds are none.
func monitored(ctx component.WorkloadContext) ([]monitor, error) {
	var all []monitor
	for _, kind := range []string{"ServiceMonitor", "PodMonitor"} {
		gvk := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind}
		if ctx.Capabilities == nil {
			continue
		}
		usable, err := ctx.Capabilities.Accessible(ctx.Context, gvk)
		if err != nil {
			return nil, err
		}
		if !usable {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
		if err := ctx.Reader.List(ctx.Context, list, client.InNamespace(ctx.HCP.Namespace)); err != nil {
			return nil, fmt.Errorf("listing %ss of the control plane: %w", kind, err)
		}
		for i := range list.Items {
			if m, ok := monitorOf(&list.Items[i], kind == "PodMonitor"); ok {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b monitor) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func monitorOf(u *unstructured.Unstructured, pods bool) (monitor, bool) {
	field := "endpoints"
	if pods {
		field = "podMetricsEndpoints"
	}
	m := monitor{name: u.GetName(), pods: pods, labels: map[string]string{}}
	m.selector, _, _ = unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", field)
	if len(list) == 0 {
		return m, false
	}
	m.endpoint, _ = list[0].(map[string]any)
	for _, label := range []string{"job", "namespace", "service", "endpoint"} {
		m.labels[label] = u.GetAnnotations()[metricsAnnotation+label]
	}
	return m, m.endpoint != nil
}

// ref is a file that a monitor's TLS configuration names: a key of a ConfigMap or a Secret.
type ref struct {
	object, key string
	configMap   bool
}

func (r ref) path() string {
	if r.object == "" {
		return ""
	}
	return path.Join(certsDir, r.object, r.key)
}

// refs are the authority, the certificate and the key.
func (m monitor) refs() (ca, cert, key ref) {
	of := func(fields ...string) ref {
		for _, kind := range []string{"configMap", "secret"} {
			name, _, _ := unstructured.NestedString(m.endpoint, append(fields, kind, "name")...)
			file, _, _ := unstructured.NestedString(m.endpoint, append(fields, kind, "key")...)
			if name != "" {
				return ref{name, file, kind == "configMap"}
			}
		}
		return ref{}
	}
	key.object, _, _ = unstructured.NestedString(m.endpoint, "tlsConfig", "keySecret", "name")
	key.key, _, _ = unstructured.NestedString(m.endpoint, "tlsConfig", "keySecret", "key")
	return of("tlsConfig", "ca"), of("tlsConfig", "cert"), key
}

// files are those of one ConfigMap or Secret.
type files struct {
	object    string
	configMap bool
	keys      []string // sorted
}

// filesOf are what has to be mounted for the monitors, by name.
func filesOf(all []monitor) []files {
	keys := map[ref]map[string]bool{}
	for _, m := range all {
		ca, cert, key := m.refs()
		for _, r := range []ref{ca, cert, key} {
			object := ref{object: r.object, configMap: r.configMap}
			if r.object == "" {
				continue
			}
			if keys[object] == nil {
				keys[object] = map[string]bool{}
			}
			keys[object][r.key] = true
		}
	}
	var list []files
	for object, of := range keys {
		list = append(list, files{object.object, object.configMap, slices.Sorted(maps.Keys(of))})
	}
	slices.SortFunc(list, func(a, b files) int { return cmp.Compare(a.object, b.object) })
	return list
}

// target is how the proxy scrapes a component.
type target struct {
	Name             string            `json:"name"`
	Selector         map[string]string `json:"selector"`
	MetricsPort      int32             `json:"metricsPort"`
	MetricsPath      string            `json:"metricsPath"`
	MetricsScheme    string            `json:"metricsScheme"`
	TLSServerName    string            `json:"tlsServerName,omitempty"`
	CAFile           string            `json:"caFile,omitempty"`
	CertFile         string            `json:"certFile,omitempty"`
	KeyFile          string            `json:"keyFile,omitempty"`
	MetricsJob       string            `json:"metricsJob,omitempty"`
	MetricsNamespace string            `json:"metricsNamespace,omitempty"`
	MetricsService   string            `json:"metricsService,omitempty"`
	MetricsEndpoint  string            `json:"metricsEndpoint,omitempty"`
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	all, err := monitored(ctx)
	if err != nil {
		return err
	}
	targets := []target{}
	for _, m := range all {
		selector, port, err := resolve(ctx, m)
		if err != nil {
			return err
		}
		if port == 0 {
			continue // nothing serves it yet
		}
		text := func(field, otherwise string) string {
			value, _, _ := unstructured.NestedString(m.endpoint, field)
			return cmp.Or(value, otherwise)
		}
		ca, cert, key := m.refs()
		server, _, _ := unstructured.NestedString(m.endpoint, "tlsConfig", "serverName")
		targets = append(targets, target{
			Name: m.name, Selector: selector, MetricsPort: port, MetricsPath: text("path", "/metrics"), MetricsScheme: text("scheme", "http"), TLSServerName: server,
			CAFile: ca.path(), CertFile: cert.path(), KeyFile: key.path(),
			MetricsJob: m.labels["job"], MetricsNamespace: m.labels["namespace"], MetricsService: m.labels["service"], MetricsEndpoint: m.labels["endpoint"],
		})
	}
	raw, err := yaml.Marshal(map[string]any{
		"endpointResolver": map[string]any{"url": "https://endpoint-resolver." + ctx.HCP.Namespace + ".svc", "caFile": certsDir + "/endpoint-resolver-ca/tls.crt"},
		"components":       targets,
	})
	if err != nil {
		return fmt.Errorf("writing the configuration of the metrics proxy: %w", err)
	}
	cm.Data = map[string]string{"config.yaml": string(raw)}
	return nil
}
