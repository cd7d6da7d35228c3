package install

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/contract/scraping"
)

func TestMonitoringOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		m    Monitoring
		want string
	}{
		"When nothing is said it should be fine":              {Monitoring{}, ""},
		"When all is said it should be fine":                  {Monitoring{Namespace: "monitoring", Account: "kps-prometheus", Labels: map[string]string{"release": "kps"}, RunbookURL: "https://example.com/a"}, ""},
		"When a namespace can't be one it should say so":      {Monitoring{Namespace: "Monitoring"}, `--prometheus-namespace "Monitoring"`},
		"When an account has no namespace it should ask":      {Monitoring{Account: "prometheus"}, "name its namespace, too, by --prometheus-namespace"},
		"When a label can't be one it should say which":       {Monitoring{Labels: map[string]string{"a b": "c"}}, `--monitor-labels "a b=c"`},
		"When a page has a heading already it should say so":  {Monitoring{RunbookURL: "https://example.com/a#b"}, "must be a URL like"},
		"When a page is no URL it should say what to write":   {Monitoring{RunbookURL: "docs"}, "must be a URL like"},
		"When a value of a label can't be one it should tell": {Monitoring{Labels: map[string]string{"a": "b,c"}}, `--monitor-labels "a=b,c"`},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := NewWithT(t), tc.m.validate()
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestPlainPrometheus(t *testing.T) {
	o := resources(func(o *Options) {
		o.Monitoring = Monitoring{Platform: MonitorNone, Objects: true, Namespace: "monitoring", Account: "kps", Labels: map[string]string{"release": "kps"}, RunbookURL: "https://example.com/alerts"}
		o.PackageOperator, o.Metrics.Secure, o.capi = true, true, &capiChoice{Private: true}
	})
	t.Run("When a Prometheus is named it should be the one that may ask", func(t *testing.T) {
		g, bindings := NewWithT(t), 0
		for _, obj := range Resources(o) {
			var subjects []rbacv1.Subject
			switch b := obj.(type) {
			case *rbacv1.RoleBinding:
				if b.Name != prometheusRoleName {
					continue
				}
				subjects = b.Subjects
			case *rbacv1.ClusterRoleBinding:
				if b.Name != metricsReaderName {
					continue
				}
				subjects = b.Subjects
			default:
				continue
			}
			bindings++
			g.Expect(subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Name: "kps", Namespace: "monitoring"}}))
		}
		g.Expect(bindings).To(Equal(3))
	})
	t.Run("When monitors are to have labels all should have them, and alerts should lead to the page", func(t *testing.T) {
		g, monitors, alerts := NewWithT(t), 0, 0
		for _, obj := range Resources(o) {
			u, ok := obj.(*unstructured.Unstructured)
			if !ok || u.GroupVersionKind().Group != monitoringGroup {
				continue
			}
			monitors++
			g.Expect(u.GetLabels()).To(HaveKeyWithValue("release", "kps"), u.GetKind()+" "+u.GetName())
			groups, _, _ := unstructured.NestedSlice(u.Object, "spec", "groups")
			for _, group := range groups {
				for _, r := range group.(map[string]any)["rules"].([]any) {
					if r := r.(map[string]any); r["alert"] == "HyperShiftEtcdUnavailable" {
						alerts++
						g.Expect(r["annotations"]).To(HaveKeyWithValue("runbook_url", "https://example.com/alerts#hypershiftetcdunavailable"))
					}
				}
			}
		}
		g.Expect(monitors).To(BeNumerically(">=", 7))
		g.Expect(alerts).To(Equal(1))
	})
	t.Run("When a Prometheus is named the operator should be told", func(t *testing.T) {
		NewWithT(t).Expect(operatorEnv(o)).To(ContainElements(
			corev1.EnvVar{Name: scraping.EnvNamespace, Value: "monitoring"}, corev1.EnvVar{Name: scraping.EnvLabels, Value: "release=kps"}))
	})
	t.Run("When dashboards are asked for they should be where Grafana looks", func(t *testing.T) {
		g, o := NewWithT(t), resources(func(o *Options) { o.Monitoring.Dashboards = true })
		objs := dashboards(o)
		g.Expect(objs).To(HaveLen(3))
		for _, obj := range objs {
			cm := obj.(*corev1.ConfigMap)
			g.Expect(cm.Labels).To(HaveKeyWithValue("grafana_dashboard", "1"))
			g.Expect(cm.Namespace).To(Equal("hypershift"))
			for _, content := range cm.Data {
				g.Expect(content).To(ContainSubstring(`"schemaVersion"`))
			}
		}
		g.Expect(dashboards(resources(nil))).To(BeEmpty())
	})
	t.Run("When there is no Prometheus operator it should write files", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		o := resources(func(o *Options) { o.PackageOperator = true })
		g.Expect(writePrometheus(o, dir)).To(Succeed())
		config, err := os.ReadFile(filepath.Join(dir, "prometheus.yml"))
		g.Expect(err).NotTo(HaveOccurred())
		clitest.Golden(t, "prometheus.yml", string(config))
		raw, err := os.ReadFile(filepath.Join(dir, "rules.yml"))
		g.Expect(err).NotTo(HaveOccurred())
		var rules struct {
			Groups []struct {
				Name  string
				Rules []map[string]any
			}
		}
		g.Expect(yaml.Unmarshal(raw, &rules)).To(Succeed())
		var names []string
		for _, group := range rules.Groups {
			g.Expect(group.Rules).NotTo(BeEmpty())
			names = append(names, group.Name)
		}
		g.Expect(names).To(ConsistOf("hypershift.rules", "hypershift.operations", "hypershift.packages", "hypershift.private-capi"))
		g.Expect(filepath.Glob(filepath.Join(dir, "dashboards", "*.json"))).To(HaveLen(3))
	})
	t.Run("When nobody can verify the metrics' certificates it should write nothing", func(t *testing.T) {
		g, dir := NewWithT(t), filepath.Join(t.TempDir(), "x")
		g.Expect(writePrometheus(resources(func(o *Options) { o.Metrics.Secure = true }), dir)).To(MatchError(ContainSubstring("--metrics-cert-secret")))
		_, err := os.Stat(dir)
		g.Expect(os.IsNotExist(err)).To(BeTrue())
	})
}
