package monitoring

// Scrape is what a Prometheus has to know to find our programs by the API of the management cluster.
type Scrape struct {
	// Namespace is that of the hypershift-operator, PackageNamespace that of the operator of packages; empty: there is none.
	Namespace, PackageNamespace string
	// Secure: operators serve metrics by HTTPS, to those only who may read them.
	Secure bool
}

// Where a Prometheus in a pod has what it shows, and the authority of the operators' certificates, which somebody has to mount there.
const (
	tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	caFile    = "/etc/prometheus/hypershift/ca.crt"
)

const meta = "__meta_kubernetes_"

// Config is a whole configuration, with rules from files whose names are relative to it. Programs of control planes that serve by HTTPS to holders of a
// certificate (kube-apiserver and others of an OpenShift payload) are not in it: their certificates are in each control plane's namespace.
func (s Scrape) Config(rules ...string) map[string]any {
	jobs := []any{s.operator("hypershift-operator", s.Namespace, "metrics", meta+"pod_label_name", "operator"), s.proxies(), s.controlPlanes()}
	if s.PackageNamespace != "" {
		jobs = append(jobs, s.operator("package-operator", s.PackageNamespace, "metrics", meta+"pod_label_app_kubernetes_io_name", "package-operator"))
	}
	files := []any{}
	for _, f := range rules {
		files = append(files, f)
	}
	return map[string]any{"global": map[string]any{"scrape_interval": "30s", "evaluation_interval": "30s"}, "rule_files": files, "scrape_configs": jobs}
}

// operator is a job of the pods of one Deployment.
func (s Scrape) operator(job, namespace, port, label, value string) map[string]any {
	config := pods(job, []any{namespace}, keep(label, value), keep(meta+"pod_container_port_name", port))
	config["honor_labels"] = true // metrics of hosted clusters have their namespace
	if s.Secure {
		config["scheme"] = "https"
		config["authorization"] = map[string]any{"credentials_file": tokenFile}
		config["tls_config"] = map[string]any{"ca_file": caFile, "server_name": value + "." + namespace + ".svc"}
	}
	return config
}

// controlPlanes is the job of the programs of all control planes that serve plain HTTP on a port called metrics.
func (s Scrape) controlPlanes() map[string]any {
	return pods("hypershift-control-planes", nil, keep(meta+"pod_label_hypershift_openshift_io_control_plane_component", ".+"), keep(meta+"pod_container_port_name", "metrics"),
		copied(meta+"pod_label_hypershift_openshift_io_control_plane_component", "component"))
}

// proxies is the job of the proxies for Cluster API, in whichever pod they are.
func (s Scrape) proxies() map[string]any {
	return pods("hypershift-capi-proxies", nil, keep(meta+"pod_container_port_name", "proxy-health"))
}

// pods is a job of ports of pods, of all namespaces when none is named.
func pods(job string, namespaces []any, relabel ...any) map[string]any {
	sd := map[string]any{"role": "pod"}
	if len(namespaces) > 0 {
		sd["namespaces"] = map[string]any{"names": namespaces}
	}
	relabel = append(relabel, map[string]any{"source_labels": []any{meta + "pod_phase"}, "action": "drop", "regex": "Pending|Succeeded|Failed"},
		copied(meta+"namespace", "namespace"), copied(meta+"pod_name", "pod"), copied(meta+"pod_container_name", "container"))
	return map[string]any{"job_name": job, "kubernetes_sd_configs": []any{sd}, "relabel_configs": relabel}
}

func keep(label, regex string) map[string]any {
	return map[string]any{"source_labels": []any{label}, "action": "keep", "regex": regex}
}

func copied(from, to string) map[string]any {
	return map[string]any{"source_labels": []any{from}, "action": "replace", "target_label": to}
}
