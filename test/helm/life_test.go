package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/uninstall"
	"hcp.internal/platform/internal/cli/version"
	"hcp.internal/platform/internal/testenv"
)

// patience is for an API server on a busy machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(testenv.BinaryEnv) == "" { // it is in the folder of the repository, not in that of this module
		bundle, err := filepath.Abs(filepath.Join("..", "..", "bin", "kubernetes", testenv.KubernetesVersion, "kube"))
		if err = errors.Join(err, os.Setenv(testenv.BinaryEnv, bundle)); err != nil {
			panic(err)
		}
	}
	os.Exit(testenv.Main(m))
}

// world is a management cluster with Helm before it, and something that runs the chart's Pods.
type world struct {
	*testing.T
	Gomega
	env        *testenv.Env
	c          client.WithWatch
	kubeconfig string
	namespace  string
}

func newWorld(t *testing.T, env *testenv.Env, namespace string) *world {
	t.Helper()
	w := &world{T: t, Gomega: NewWithT(t), env: env, c: env.Client(t, connect.Scheme()), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), namespace: namespace}
	w.Expect(os.WriteFile(w.kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())
	go w.runPods(t.Context())
	return w
}

func (w *world) helm() *action.Configuration {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &w.kubeconfig, &w.namespace
	flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS = -1 // five requests a second make minutes of the chart's definitions
		return c
	})
	cfg := &action.Configuration{}
	w.Expect(cfg.Init(flags, w.namespace, "secret", func(format string, v ...any) { w.Logf("helm: "+format, v...) })).To(Succeed())
	return cfg
}

// as is a kubeconfig of a Pod: with the rights of its account, and no others.
func (w *world) as(account string) string {
	path := filepath.Join(w.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: w.env.Config.Host, CertificateAuthorityData: w.env.CA}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"a": {
			ClientCertificateData: w.env.Config.CertData, ClientKeyData: w.env.Config.KeyData,
			Impersonate: fmt.Sprintf("system:serviceaccount:%s:%s", w.namespace, account), ImpersonateGroups: []string{"system:serviceaccounts", "system:authenticated"},
		}},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "a"}}, CurrentContext: "x",
	}, path)
	if err != nil {
		w.Error(err)
	}
	return path
}

// programs are what the chart's hooks run.
var programs = map[string]func() *cobra.Command{"install": install.Command, "version": version.Command}

// do runs the program of a Pod.
func (w *world) do(ctx context.Context, spec corev1.PodSpec) (string, error) {
	container := spec.Containers[0]
	if !slices.Equal(container.Command, []string{"/usr/bin/hypershift"}) || programs[container.Args[0]] == nil {
		return "", fmt.Errorf("no program is known for %v %v", container.Command, container.Args)
	}
	var out bytes.Buffer
	cmd := programs[container.Args[0]]()
	cmd.SetArgs(append(slices.Clone(container.Args[1:]), "--kubeconfig="+w.as(spec.ServiceAccountName)))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(ctx)
	w.Logf("%v: %v\n%s", container.Args, err, out.String())
	return out.String(), err
}

// runPods is what kubelets and the controller of Jobs would do for hooks.
func (w *world) runPods(ctx context.Context) {
	done := map[string]bool{}
	for ctx.Err() == nil {
		jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
		if err := errors.Join(w.c.List(ctx, jobs, client.InNamespace(w.namespace)), w.c.List(ctx, pods, client.InNamespace(w.namespace))); err != nil {
			continue
		}
		for i := range jobs.Items {
			job := &jobs.Items[i]
			if done[string(job.UID)] {
				continue
			}
			done[string(job.UID)] = true
			_, err := w.do(ctx, job.Spec.Template.Spec)
			now := metav1.Now()
			job.Status.StartTime = &now
			if err == nil {
				job.Status.CompletionTime, job.Status.Succeeded = &now, 1
				job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: "True", LastTransitionTime: now}, {Type: batchv1.JobComplete, Status: "True", LastTransitionTime: now}}
			} else {
				job.Status.Conditions = []batchv1.JobCondition{
					{Type: batchv1.JobFailureTarget, Status: "True", LastTransitionTime: now, Message: err.Error()},
					{Type: batchv1.JobFailed, Status: "True", LastTransitionTime: now, Message: err.Error()},
				}
			}
			if err := w.c.Status().Update(ctx, job); err != nil && ctx.Err() == nil {
				w.Errorf("reporting on a Job: %v", err)
			}
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if done[string(pod.UID)] {
				continue
			}
			done[string(pod.UID)] = true
			pod.Status.Phase = corev1.PodSucceeded
			if _, err := w.do(ctx, pod.Spec); err != nil {
				pod.Status.Phase = corev1.PodFailed
			}
			if err := w.c.Status().Update(ctx, pod); err != nil && ctx.Err() == nil {
				w.Errorf("reporting on a Pod: %v", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond): // a look at the world, as a kubelet takes it
		}
	}
}

// objects are all that the cluster holds, but what it makes by itself.
func (w *world) objects() []string {
	d, err := discovery.NewDiscoveryClientForConfig(w.env.Config)
	w.Expect(err).NotTo(HaveOccurred())
	m, err := metadata.NewForConfig(rest.CopyConfig(w.env.Config))
	w.Expect(err).NotTo(HaveOccurred())
	lists, err := d.ServerPreferredResources()
	w.Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision", "ComponentStatus", "APIService"}, r.Kind) {
				continue
			}
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			w.Expect(err).NotTo(HaveOccurred())
			found, err := m.Resource(gv.WithResource(r.Name)).List(w.Context(), metav1.ListOptions{})
			w.Expect(err).NotTo(HaveOccurred(), list.GroupVersion+" "+r.Name)
			for _, obj := range found.Items {
				if r.Kind == "Namespace" && strings.HasPrefix(obj.Name, "kube-") || r.Kind == "ConfigMap" && obj.Name == "kube-root-ca.crt" || r.Kind == "ServiceAccount" && obj.Name == "default" {
					continue // of each namespace
				}
				out = append(out, r.Kind+" "+obj.Namespace+"/"+obj.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// crd has a definition, with the fields of a HostedCluster's specification that it knows.
func (w *world) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	w.Expect(w.c.Get(w.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
	return crd
}

func (w *world) image() string {
	d := &appsv1.Deployment{}
	w.Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "operator"}, d)).To(Succeed())
	return d.Spec.Template.Spec.Containers[0].Image
}

const (
	hostedClusters = "hostedclusters.hypershift.openshift.io"
	clusters       = "clusters.cluster.hypershift.openshift.io"
	// older is a description that the definitions of the older chart have.
	older = "description of the older version"
)

// before makes a chart the one of the version before: its definitions say less, and it has an object that the next one hasn't.
func before(t *testing.T) func(files map[string][]byte) {
	return func(files map[string][]byte) {
		name := "crds/" + hostedClusters + ".yaml"
		text := string(files[name])
		i := strings.Index(text, "description: ")
		end := i + strings.Index(text[i:], "\n")
		if strings.HasSuffix(text[i:end], "|-") || strings.HasSuffix(text[i:end], ">-") {
			t.Fatal("the first description has several lines")
		}
		files[name] = []byte(text[:i] + "description: " + older + text[end:])
		files["Chart.yaml"] = bytes.ReplaceAll(files["Chart.yaml"], []byte("\nversion: "), []byte("\nversion: 0.0.1-before-"))
		files["templates/gone.yaml"] = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gone\n  namespace: {{ .Release.Namespace }}\n")
	}
}

func describes(crd *apiextensionsv1.CustomResourceDefinition, text string) bool {
	raw, _ := crd.Marshal()
	return bytes.Contains(raw, []byte(text))
}

func TestLife(t *testing.T) {
	t.Parallel()
	env := testenv.StartOther(t) // which knows nothing of us
	env.StartControllers(t)
	for _, tc := range []struct{ name, namespace string }{
		{"When the chart is in its usual namespace it should live and leave nothing", install.DefaultNamespace},
		{"When the chart is in another namespace it should live and leave nothing", "control-planes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, env, tc.namespace)
			// kube-apiserver's own objects come when it serves already.
			w.Eventually(w.objects, patience, time.Second).Should(ContainElement("Service default/kubernetes"))
			empty := w.objects()
			w.live()
			w.Eventually(func() []string {
				return slices.DeleteFunc(w.objects(), func(o string) bool { return slices.Contains(empty, o) })
			}, patience, time.Second).Should(BeEmpty())
		})
	}
}

// live installs, upgrades, tests, rolls back and uninstalls.
func (w *world) live() {
	o := options()
	i := action.NewInstall(w.helm())
	i.ReleaseName, i.Namespace, i.CreateNamespace, i.Timeout = "hypershift", w.namespace, true, patience
	first, err := i.RunWithContext(w.Context(), load(w.T, o, before(w.T)), map[string]any{"image": "r/i:1", "packageOperator": map[string]any{"enabled": true}})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(first.Info.Status).To(Equal(release.StatusDeployed))
	w.Expect(w.image()).To(Equal("r/i:1"))
	w.Expect(describes(w.crd(hostedClusters), older)).To(Equal(w.namespace == install.DefaultNamespace))
	w.Expect(w.crd(clusters).Spec.Conversion.Webhook.ClientConfig.Service.Namespace).To(Equal(w.namespace), "which converts")
	w.Expect(w.objects()).To(ContainElements("ConfigMap "+w.namespace+"/gone", "PodDisruptionBudget "+w.namespace+"/operator", "Deployment package-operator-system/package-operator-manager"))

	w.upgrade(o)

	// The operator isn't at work, and then is.
	w.Expect(w.test()).To(HaveOccurred())
	w.Expect(w.c.Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "supported-versions"},
		Data: map[string]string{"supported-versions": `{"versions":["1.36"]}`, "server-version": "0123456789ab", "server-semantic-version": "0.1.0"}})).To(Succeed())
	w.Expect(w.test()).To(Succeed())

	back := action.NewRollback(w.helm())
	back.Version, back.Timeout = 1, patience
	w.Expect(back.Run("hypershift")).To(Succeed())
	w.Expect(w.image()).To(Equal("r/i:1"))
	w.Expect(w.objects()).To(ContainElement("ConfigMap " + w.namespace + "/gone"))
	w.Expect(describes(w.crd(hostedClusters), older)).To(BeFalse(), "definitions never go back: objects may need what the newer one has")

	end := action.NewUninstall(w.helm())
	end.Timeout = patience
	_, err = end.Run("hypershift")
	w.Expect(err).NotTo(HaveOccurred())
	w.crd(hostedClusters) // is there: Helm never takes the objects of users along

	rest := uninstall.NewOptions()
	rest.Connect.Kubeconfig, rest.Namespace, rest.Yes, rest.Timeout = w.kubeconfig, w.namespace, true, patience
	var out bytes.Buffer
	err = uninstall.Run(w.Context(), rest, io.Writer(&out))
	w.Expect(err).NotTo(HaveOccurred(), out.String())
}

// upgrade goes to this version, with other values.
func (w *world) upgrade(o install.Options) {
	u := action.NewUpgrade(w.helm())
	u.Namespace, u.Timeout = w.namespace, patience
	second, err := u.RunWithContext(w.Context(), "hypershift", load(w.T, o, nil), map[string]any{"image": "r/i:2", "replicas": 1})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(second.Info.Status).To(Equal(release.StatusDeployed))
	w.Expect(w.image()).To(Equal("r/i:2"))
	w.Expect(describes(w.crd(hostedClusters), older)).To(BeFalse(), "the Job brings definitions up to date")
	for _, gone := range []string{"ConfigMap " + w.namespace + "/gone", "PodDisruptionBudget " + w.namespace + "/operator", "Job " + w.namespace + "/hypershift-crds"} {
		w.Expect(w.objects()).NotTo(ContainElement(gone))
	}
	w.Eventually(w.objects, patience, time.Second).ShouldNot(ContainElement("Namespace /package-operator-system"), "which the value took away")
}

func (w *world) test() error {
	t := action.NewReleaseTesting(w.helm())
	t.Namespace, t.Timeout = w.namespace, patience
	_, err := t.Run("hypershift")
	return err
}
