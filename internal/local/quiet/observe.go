package quiet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/kubeconfig"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/sleep"
)

const (
	managementName = "management"
	// stillFor is how long nothing may be written before an observation begins.
	stillFor = 15 * time.Second
	// breath lets servers put away what reading everything has cost them.
	breath = 5 * time.Second
	// kubeconfigKey is the key of a published kubeconfig in its Secret.
	kubeconfigKey = "kubeconfig"
)

// Options of an observation.
type Options struct {
	StateDir string
	// Settle is how long the clusters may take until nothing is written any more. Then the observation begins anyway, and tells what is written.
	Settle time.Duration
	Length time.Duration
	Bounds Bounds
	// Say gets a line about what is waited for; nil: nobody does.
	Say io.Writer
}

// observer reads the three accounts.
type observer struct {
	Options
	paths      components.Paths
	management kubernetes.Interface
	servers    []*Server
}

// Observe looks at a local cluster and its hosted clusters for a while. What is not quiet is in the report, not an error.
func Observe(ctx context.Context, o Options) (Report, error) {
	w := &observer{Options: o, paths: components.Paths{State: o.StateDir}}
	if w.Say == nil {
		w.Say = io.Discard
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", w.paths.Kubeconfig())
	if err != nil {
		return Report{}, fmt.Errorf("reading the kubeconfig of the local cluster (is it up? hypershift local status): %w", err)
	}
	cfg.UserAgent, cfg.QPS = userAgent, -1
	if w.management, err = kubernetes.NewForConfig(cfg); err != nil {
		return Report{}, err
	}
	if w.servers, err = servers(ctx, cfg); err != nil {
		return Report{}, err
	}
	if err := w.settle(ctx); err != nil {
		return Report{}, err
	}
	seen, err := w.watch(ctx)
	if err != nil {
		return Report{}, err
	}
	return judge(seen, w.Bounds), nil
}

// servers are the management API and those of all hosted clusters that have published a kubeconfig.
func servers(ctx context.Context, cfg *rest.Config) ([]*Server, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(hyperv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	api, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	all := []*Server{{Name: managementName, Config: cfg}}
	clusters := &hyperv1.HostedClusterList{}
	if err := api.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("listing HostedClusters: %w", err)
	}
	for i := range clusters.Items {
		hc := &clusters.Items[i]
		if hc.Status.KubeConfig == nil {
			continue
		}
		secret := &corev1.Secret{}
		if err := api.Get(ctx, client.ObjectKey{Namespace: hc.Namespace, Name: hc.Status.KubeConfig.Name}, secret); err != nil {
			return nil, fmt.Errorf("reading the kubeconfig of %s/%s: %w", hc.Namespace, hc.Name, err)
		}
		config, err := kubeconfig.Foreign(secret.Data[kubeconfigKey]) // others may write in that namespace
		if err != nil {
			return nil, fmt.Errorf("kubeconfig of %s/%s: %w", hc.Namespace, hc.Name, err)
		}
		hosted, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("kubeconfig of %s/%s: %w", hc.Namespace, hc.Name, err)
		}
		all = append(all, &Server{Name: hc.Namespace + "/" + hc.Name, Config: hosted})
	}
	for _, s := range all {
		if err := s.connect(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// settle waits until nothing is written for a while.
func (w *observer) settle(ctx context.Context) error {
	deadline := time.Now().Add(w.Settle)
	last, err := w.known(ctx)
	for err == nil {
		if err = sleep.For(ctx, stillFor); err != nil {
			break
		}
		var now map[objectKey]object
		if now, err = w.known(ctx); err != nil {
			break
		}
		writes := moved(last, now)
		if len(writes) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(w.Say, "Not settled after %s: %s\n", w.Settle, strings.Join(writes, ", "))
			return nil
		}
		fmt.Fprintf(w.Say, "Written within %s, waiting: %s\n", stillFor, strings.Join(writes[:min(len(writes), 5)], ", "))
		last = now
	}
	return err
}

func (w *observer) known(ctx context.Context) (map[objectKey]object, error) {
	all := map[objectKey]object{}
	for _, s := range w.servers {
		found, err := s.known(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

func (w *observer) contents(ctx context.Context) (map[objectKey]object, error) {
	all := map[objectKey]object{}
	for _, s := range w.servers {
		found, err := s.contents(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

// watch is the observation. What reading everything costs falls before and after it.
func (w *observer) watch(ctx context.Context) (observation, error) {
	fmt.Fprintf(w.Say, "Watching %d API servers for %s.\n", len(w.servers), w.Length)
	seen := observation{}
	var err error
	if seen.before, err = w.contents(ctx); err != nil {
		return seen, err
	}
	audit, err := os.Open(w.paths.Audit())
	if errors.Is(err, fs.ErrNotExist) {
		return seen, fmt.Errorf("the local cluster was started by an older version, which kept no audit log: run hypershift local up: %w", err)
	}
	if err != nil {
		return seen, err
	}
	defer audit.Close()
	if _, err := audit.Seek(0, io.SeekEnd); err != nil {
		return seen, err
	}
	if err := sleep.For(ctx, breath); err != nil {
		return seen, err
	}
	before, err := readProcesses("/proc")
	if err != nil {
		return seen, err
	}
	from := time.Now()
	if err := sleep.For(ctx, w.Length); err != nil {
		return seen, err
	}
	after, err := readProcesses("/proc")
	if err != nil {
		return seen, err
	}
	to := time.Now()
	seen.length = to.Sub(from)
	if seen.after, err = w.contents(ctx); err != nil {
		return seen, err
	}
	known, err := w.pods(ctx)
	if err != nil {
		return seen, err
	}
	inState := func(p process) bool { return strings.Contains(p.cmdline, w.StateDir+"/") }
	seen.cpu = usage(before, after, known, inState)
	seen.clients, err = w.requests(ctx, audit, from, to)
	return seen, err
}

func (w *observer) pods(ctx context.Context) (pods, error) {
	list, err := w.management.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	known := pods{}
	for _, pod := range list.Items {
		known[string(pod.UID)] = pod
	}
	return known, nil
}

// requests reads audit logs: that of the management API from its file, which may have been replaced by another meanwhile, those of hosted
// clusters from the containers that show them.
func (w *observer) requests(ctx context.Context, audit *os.File, from, to time.Time) ([]Requests, error) {
	logs := []io.Reader{audit}
	if now, err := os.Open(w.paths.Audit()); err == nil {
		defer now.Close()
		if !sameFile(audit, now) {
			logs = append(logs, now)
		}
	}
	events, err := readAudit(io.MultiReader(logs...), from, to)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", w.paths.Audit(), err)
	}
	clients := byClient(managementName, events)
	for _, s := range w.servers[1:] {
		ns, name, _ := strings.Cut(s.Name, "/")
		events, err := w.hostedAudit(ctx, names.ControlPlaneNamespace(ns, name), from, to)
		if err != nil {
			return nil, fmt.Errorf("reading the audit log of %s: %w", s.Name, err)
		}
		clients = append(clients, byClient(s.Name, events)...)
	}
	return clients, nil
}

func (w *observer) hostedAudit(ctx context.Context, namespace string, from, to time.Time) ([]auditEvent, error) {
	list, err := w.management.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=kube-apiserver"})
	if err != nil {
		return nil, err
	}
	var all []auditEvent
	for _, pod := range list.Items {
		since := metav1.NewTime(from.Add(-time.Second))
		log, err := w.management.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "audit-logs", SinceTime: &since}).Stream(ctx)
		if err != nil {
			return nil, err
		}
		events, err := readAudit(log, from, to)
		if err := errors.Join(err, log.Close()); err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	return all, nil
}

func sameFile(a, b *os.File) bool {
	x, errA := a.Stat()
	y, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(x, y)
}
