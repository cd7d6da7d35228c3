package oadp

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// run calls a command and returns what it printed.
func run(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	root := &cobra.Command{Use: "create", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestCron(t *testing.T) {
	for in, want := range map[string]string{
		"daily": "0 0 * * *", "DAILY-6AM": "0 6 * * *", "@Weekly": "0 0 * * 0", "weekly-friday": "0 0 * * 5", "@yearly": "0 0 1 1 *",
		"*/15 0-6 1,15 * 1-5": "*/15 0-6 1,15 * 1-5", " 5  4 * *  0 ": "5 4 * * 0", "1-10/2 * * * *": "1-10/2 * * * *",
	} {
		t.Run("When the schedule is "+in+" it should be taken", func(t *testing.T) {
			g := NewWithT(t)
			got, err := cron(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
	for in, want := range map[string]string{
		"": "0 fields", "* * * *": "4 fields", "60 * * * *": `minute "60": "60" is not a number between 0 and 59`, "* * 0 * *": "day of month",
		"* * * JAN *": "month", "* * * * 7": "between 0 and 6", "5-1 * * * *": "ends before it begins", "*/0 * * * *": "step", "+5 * * * *": "not a number",
		"sometimes": "1 fields", "* * * * *\n* * * * *": "10 fields", "1--2 * * * *": "not a number", "99999999999999999999 * * * *": "not a number",
	} {
		t.Run("When the schedule is "+in+" it should be refused", func(t *testing.T) {
			_, err := cron(in)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestNames(t *testing.T) {
	t.Run("When names are generated they should be valid, short, and those of different clusters different", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			name := rapid.StringMatching(`[a-z][a-z0-9-]{0,60}[a-z0-9]`).Draw(t, "name")
			namespace := rapid.StringMatching(`[a-z][a-z0-9-]{0,60}[a-z0-9]`).Draw(t, "namespace")
			for _, n := range []string{generated(name, namespace), policyName(name, namespace)} {
				if err := checkName("backup", n); err != nil {
					t.Fatal(err)
				}
			}
			if again := policyName(name, namespace); again != policyName(name, namespace) || again == policyName(name+"x", namespace) {
				t.Fatal("the name of the policy must follow the cluster")
			}
		})
	})
	t.Run("When a name is too long it should say by how much and what to do", func(t *testing.T) {
		NewWithT(t).Expect(checkName("schedule", strings.Repeat("a", 64))).To(MatchError("schedule name '" + strings.Repeat("a", 64) +
			"' is too long (64 characters). Kubernetes resource names must be 63 characters or less. Use --name to specify a shorter custom name"))
	})
	t.Run("When a name is no name it should say so", func(t *testing.T) {
		NewWithT(t).Expect(checkName("restore", "A_b")).To(MatchError(HavePrefix("restore name 'A_b' is invalid: ")))
	})
}

func TestResources(t *testing.T) {
	t.Run("When etcd writes the snapshot no volumes and no programs should be saved", func(t *testing.T) {
		g := NewWithT(t)
		got := resources(cluster{platform: hyperv1.KubevirtPlatform}, true)
		for _, v := range volumes {
			g.Expect(got).NotTo(ContainElement(v))
		}
		g.Expect(got).To(ContainElements("namespaces", "datavolumes.cdi.kubevirt.io"))
		g.Expect(got).NotTo(ContainElement(HavePrefix("kubevirtmachines.")))
		g.Expect(resources(cluster{platform: hyperv1.KubevirtPlatform}, false)).To(ContainElements("persistentvolumes", "statefulsets"))
	})
	t.Run("When a platform has no list it should be saved as AWS", func(t *testing.T) {
		NewWithT(t).Expect(resources(cluster{platform: hyperv1.NonePlatform}, false)).To(Equal(resources(cluster{platform: hyperv1.AWSPlatform}, false)))
	})
}

func TestPrivateTypes(t *testing.T) {
	t.Run("When Cluster API is in HyperShift's own groups it should be saved from there", func(t *testing.T) {
		g := NewWithT(t)
		got := resources(cluster{platform: hyperv1.AWSPlatform, private: true}, false)
		g.Expect(got).To(ContainElements("machines.cluster.hypershift.openshift.io", "awsmachines.infrastructure.cluster.hypershift.openshift.io", "routes.route.openshift.io"))
		g.Expect(got).NotTo(ContainElement(HaveSuffix("cluster.x-k8s.io")))
	})
}

func TestRender(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	hc := []string{"--hc-name", "demo", "--hc-namespace", "clusters", "--name", "one", "--render"}
	for name, args := range map[string][]string{
		"backup":            {"oadp-backup"},
		"backup-etcd":       {"oadp-backup", "--use-etcd-snapshot", "--ttl", "72h"},
		"backup-full":       {"oadp-backup", "--storage-location", "s3", "--snapshot-move-data=false", "--default-volumes-to-fs-backup", "--included-resources", "secrets,pods", "--include-additional-namespaces", "a,b", "--oadp-namespace", "velero"},
		"restore":           {"oadp-restore", "--from-backup", "b"},
		"restore-etcd":      {"oadp-restore", "--from-backup", "b", "--use-etcd-snapshot"},
		"restore-scheduled": {"oadp-restore", "--from-schedule", "s", "--existing-resource-policy", "none", "--restore-pvs=false", "--preserve-node-ports=false"},
		"schedule":          {"oadp-schedule", "--schedule", "@daily"},
		"schedule-full":     {"oadp-schedule", "--schedule", "0 */6 * * *", "--paused", "--use-owner-references", "--skip-immediately", "--snapshot-move-data"},
	} {
		t.Run("When "+name+" is rendered it should need no cluster", func(t *testing.T) {
			g := NewWithT(t)
			out, _, err := run(t, append(args, hc...)...)
			g.Expect(err).NotTo(HaveOccurred())
			clitest.Golden(t, name+".yaml", out)
		})
	}
}

func TestRefused(t *testing.T) {
	hc := []string{"--hc-name", "demo", "--hc-namespace", "clusters", "--render"}
	for want, args := range map[string][]string{
		`required flag(s) "schedule" not set`:                                                               {"oadp-schedule"},
		"either --from-backup or --from-schedule must be specified":                                         {"oadp-restore"},
		"--from-backup and --from-schedule are mutually exclusive, specify only one":                        {"oadp-restore", "--from-backup", "a", "--from-schedule", "b"},
		"invalid existing-resource-policy 'all'. Valid values are: none, update":                            {"oadp-restore", "--from-backup", "a", "--existing-resource-policy", "all"},
		"--restore-pvs cannot be used with --use-etcd-snapshot":                                             {"oadp-restore", "--from-backup", "a", "--use-etcd-snapshot", "--restore-pvs"},
		"--snapshot-move-data cannot be used with --use-etcd-snapshot":                                      {"oadp-backup", "--use-etcd-snapshot", "--snapshot-move-data=false"},
		"--default-volumes-to-fs-backup cannot be used with --use-etcd-snapshot (etcd snapshot mode disabl": {"oadp-schedule", "--schedule", "daily", "--use-etcd-snapshot", "--default-volumes-to-fs-backup"},
		"--ttl 0s: give a time above zero":                                                                  {"oadp-backup", "--ttl", "0s"},
		"backup name 'A' is invalid":                                                                        {"oadp-backup", "--name", "A"},
	} {
		t.Run("When "+strings.Join(args, " ")+" is called it should be refused", func(t *testing.T) {
			_, _, err := run(t, append(args, hc...)...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

// definitions are of Velero and OADP, as far as an API server needs them.
func definitions() []client.Object {
	var out []client.Object
	for _, d := range []struct{ group, version, plural, kind string }{
		{"velero.io", "v1", "backups", "Backup"}, {"velero.io", "v1", "restores", "Restore"}, {"velero.io", "v1", "schedules", "Schedule"},
		{"oadp.openshift.io", "v1alpha1", "dataprotectionapplications", "DataProtectionApplication"},
	} {
		out = append(out, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: d.plural + "." + d.group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: d.group, Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: d.plural, Singular: strings.ToLower(d.kind), Kind: d.kind, ListKind: d.kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: d.version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(bool)}}}},
			},
		})
		*out[len(out)-1].(*apiextensionsv1.CustomResourceDefinition).Spec.Versions[0].Schema.OpenAPIV3Schema.XPreserveUnknownFields = true
	}
	return out
}

// world is a management cluster with OADP, step by step.
type world struct {
	*testing.T
	c       client.Client
	ctx     context.Context
	cluster string // namespace of the HostedCluster
	oadp    string
}

func (w world) args(command string, more ...string) []string {
	return append([]string{command, "--hc-name", "demo", "--hc-namespace", w.cluster, "--oadp-namespace", w.oadp}, more...)
}

func (w world) object(kind, name string, content map[string]any) *unstructured.Unstructured {
	api := veleroAPI
	if kind == "DataProtectionApplication" {
		api = "oadp.openshift.io/v1alpha1"
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(api, kind))
	u.SetNamespace(w.oadp)
	u.SetName(name)
	return u
}

func TestOnACluster(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	g := NewWithT(t)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(config, env.Kubeconfig(t), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", config)
	w := world{T: t, c: c, ctx: t.Context(), cluster: env.Namespace(t), oadp: env.Namespace(t)}
	expect := func(want string, args []string) {
		t.Helper()
		_, _, err := run(t, args...)
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}

	_, _, err := run(t, w.args("oadp-backup")...)
	g.Expect(err).To(MatchError(ContainSubstring("is not found: check --hc-name")), "When there is no hosted cluster it should say so")
	g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
	hc := testenv.HostedCluster(w.cluster, "demo")
	g.Expect(c.Create(w.ctx, hc)).To(Succeed())
	expect("OADP is not installed: Deployment", w.args("oadp-backup"))
	for _, name := range []string{"openshift-adp-controller-manager", "velero"} {
		labels := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.oadp, Name: name}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
		}}
		g.Expect(c.Create(w.ctx, d)).To(Succeed())
		expect("has no ready replica", w.args("oadp-backup"))
		d.Status.Replicas, d.Status.ReadyReplicas = 1, 1
		g.Expect(c.Status().Update(w.ctx, d)).To(Succeed())
	}
	expect("does not know DataProtectionApplications", w.args("oadp-backup"))
	for _, crd := range definitions() {
		g.Expect(c.Create(w.ctx, crd)).To(Succeed())
	}
	g.Eventually(func() error {
		_, _, err := run(t, w.args("oadp-backup")...)
		return err
	}).WithTimeout(30 * time.Second).Should(MatchError(ContainSubstring("no DataProtectionApplication")))
	app := w.object("DataProtectionApplication", "app", map[string]any{
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Reconciled", "status": "True"}}}})
	g.Expect(c.Create(w.ctx, app)).To(Succeed())

	t.Run("When all is there it should create the backup, and warn of a missing plugin", func(t *testing.T) {
		g := NewWithT(t)
		out, notes, err := run(t, w.args("oadp-backup", "--name", "one")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("Backup " + w.oadp + "/one created\n"))
		g.Expect(notes).To(HavePrefix("Warning: no DataProtectionApplication in namespace " + w.oadp + " lists the plugin hypershift"))
		u := w.object("Backup", "one", map[string]any{})
		g.Expect(c.Get(w.ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
		_, _, err = run(t, w.args("oadp-backup", "--name", "one")...)
		g.Expect(err).To(MatchError(ContainSubstring("exists already: take another --name")))
	})
	t.Run("When the backup isn't complete a restore should be refused", func(t *testing.T) {
		g := NewWithT(t)
		u := w.object("Backup", "running", map[string]any{"status": map[string]any{"phase": "InProgress"}})
		g.Expect(c.Create(w.ctx, u)).To(Succeed())
		_, _, err := run(t, w.args("oadp-restore", "--from-backup", "running")...)
		g.Expect(err).To(MatchError(ContainSubstring("is in phase InProgress, not Completed")))
		_, _, err = run(t, w.args("oadp-restore", "--from-backup", "none")...)
		g.Expect(err).To(MatchError(ContainSubstring("is not found: check --from-backup")))
	})
	t.Run("When a schedule is paused a restore from it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := run(t, w.args("oadp-schedule", "--schedule", "daily", "--name", "held", "--paused")...)
		g.Expect(err).NotTo(HaveOccurred())
		_, _, err = run(t, w.args("oadp-restore", "--from-schedule", "held")...)
		g.Expect(err).To(MatchError(ContainSubstring("is paused")))
	})
	t.Run("When the hosted cluster is gone a restore should still be created", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := run(t, append(w.args("oadp-restore", "--from-backup", "one"), "--hc-name", "gone")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("Restore " + w.oadp + "/gone-" + w.cluster + "-"))
	})
	t.Run("When --render finds a cluster without OADP it should warn and print", func(t *testing.T) {
		g := NewWithT(t)
		out, notes, err := run(t, append(w.args("oadp-backup", "--render"), "--oadp-namespace", "elsewhere")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("\n---\napiVersion: velero.io/v1\n"))
		g.Expect(notes).To(ContainSubstring("Warning: OADP is not installed"))
	})
	t.Run("When the platform is KubeVirt boot images should be left out by a policy that is made once", func(t *testing.T) {
		g := NewWithT(t)
		kv := BackupOptions{Saving{Common: Common{ClusterName: "demo", ClusterNamespace: w.cluster, Namespace: w.oadp, Name: "kv"}}}
		var out bytes.Buffer
		j := job{common: &kv.Common, hosted: true, build: kv.backup}
		for range 2 {
			g.Expect(j.createPolicy(w.ctx, c, &out)).To(Succeed())
		}
		g.Expect(strings.Count(out.String(), "created")).To(Equal(1))
		u := kv.backup(cluster{platform: hyperv1.KubevirtPlatform})
		name, _, _ := unstructured.NestedString(u.Object, "spec", "resourcePolicy", "name")
		rules := &corev1.ConfigMap{}
		g.Expect(c.Get(w.ctx, client.ObjectKey{Namespace: w.oadp, Name: name}, rules)).To(Succeed())
		g.Expect(rules.Data["policies.yaml"]).To(ContainSubstring(labelBootImage + `: "true"`))
	})
}
