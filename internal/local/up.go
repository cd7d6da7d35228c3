package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/local/builds"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/packages"
	"hcp.internal/platform/internal/local/preflight"
	"hcp.internal/platform/internal/local/supervisor"
)

// Say tells the person who waits what a step is at.
type Say func(format string, args ...any)

// Cluster is what a step after the management cluster works with.
type Cluster struct {
	Settings   Settings
	Config     *rest.Config
	Kubeconfig string // of the management cluster's administrator
	Images     Images
	// DemoRelease is the release image of the demo cluster.
	DemoRelease string
	// DemoKubeconfig is where the kubeconfig of the demo cluster goes.
	DemoKubeconfig string
	// Show prints a line that stays, unlike what is said on a terminal.
	Show Say
	// Clock is the time that steps live in.
	Clock clock.WithTicker
}

// Steps are what "up" runs in the management cluster. They are given from outside, so that local mode depends on no
// operator. A nil step is left out.
type Steps struct {
	// Install installs the operators and returns when they are available. It must be idempotent.
	Install func(ctx context.Context, c Cluster, say Say) error
	// Demo creates the hosted cluster clusters/demo, waits for it and writes its kubeconfig. It must be idempotent.
	Demo func(ctx context.Context, c Cluster, say Say) error
	// Workers waits for the workers of clusters/demo.
	Workers func(ctx context.Context, c Cluster, say Say) error
	// Tours show what can be done with the clusters, in this order.
	Tours []Tour
}

// Tour is something that is shown once in a cluster, after everything is there. From then on "up" leaves it to the user.
type Tour struct {
	// Name is that of the note in the state folder that it has been shown.
	Name string
	// Task is what it is called on the screen.
	Task string
	// Run must be able to begin anew after having been interrupted anywhere. ErrNotNow leaves it to a later "up".
	Run func(ctx context.Context, c Cluster, say Say) error
}

// ErrNotNow is what a Tour ends with for which its cluster isn't ready, through no fault.
var ErrNotNow = errors.New("not now")

// Up brings the cluster up, or verifies and repairs one that is up.
type Up struct {
	Settings Settings
	Steps    Steps
	Clock    clock.WithTicker
	Out      io.Writer
	TTY      bool
	// Executable is this program; a copy of it becomes the supervisor.
	Executable string

	display *progress.Display
	images  Images
}

// upStep is a step of the way to a management cluster.
type upStep struct {
	task string
	run  func(context.Context, func(string, ...any)) error
}

// Run returns when everything asked for is ready.
func (u *Up) Run(ctx context.Context) error {
	if u.Settings.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, u.Settings.Timeout)
		defer cancel()
	}
	u.display = progress.NewDisplay(u.Out, u.TTY, u.Clock)
	u.images.Releases = map[string]string{}
	steps := []upStep{
		{"checking this machine", u.preflight},
		{"installing packages", u.packages},
		{"building", u.build},
		{"starting the management cluster", u.start},
		{"pushing images", u.push},
		{"waiting for node and DNS", u.addons},
	}
	u.display.Number(len(steps) + len(u.hostedSteps()) + len(u.toursToShow()))
	for _, step := range steps {
		if err := u.display.Do(ctx, step.task, step.run); err != nil {
			return err
		}
	}
	if err := u.hosted(ctx); err != nil {
		return err
	}
	return u.summary(ctx)
}

// preflight looks whether all is there before anything is changed.
func (u *Up) preflight(ctx context.Context, _ func(string, ...any)) error {
	p := u.Settings.paths()
	current, err := CurrentInstance()
	if err != nil {
		return err
	}
	other := ""
	if current != nil && current.StateDir != p.State {
		other = current.StateDir
	}
	strange, err := foreign(p, current)
	if err != nil {
		return err
	}
	return admit(p, preflight.Observe(ctx, preflight.Input{
		StateDir: p.State, LongestSocket: components.LongestSocket, Ports: components.Ports(),
		Ours: current != nil && other == "", OtherInstance: other, Foreign: strange,
	}))
}

func (u *Up) packages(ctx context.Context, say func(string, ...any)) error {
	return installer(u.Settings.paths(), say).Run(ctx)
}

func installer(p components.Paths, say func(string, ...any)) packages.Installer {
	return packages.Installer{LogDir: p.Logs(), Note: p.ContainerdBrought(), Say: say}
}

func (u *Up) build(ctx context.Context, say func(string, ...any)) error {
	if u.Settings.SkipBuild {
		return nil
	}
	targets := append(builds.Platform(u.Settings.Root), builds.ClusterAPI())
	for _, v := range u.releases() {
		t, err := builds.Kubernetes(v)
		if err != nil {
			return err
		}
		node, err := builds.KubernetesNode(v)
		if err != nil {
			return err
		}
		targets = append(targets, t, node)
	}
	queue := builds.NewQueue(u.Settings.Root, u.Clock, targets...)
	for !queue.Empty() {
		name := queue.Step().Name
		if err := queue.Next(ctx, func(s builds.Step) { say("%s: %s, %s", s.Name, s.Progress, builds.About(s.Left)) }); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// releases are the versions to build, the management cluster's first.
func (u *Up) releases() []string {
	out := []string{u.Settings.KubernetesVersion}
	for _, v := range u.Settings.Releases {
		if v = fullVersion(v); v != u.Settings.KubernetesVersion {
			out = append(out, v)
		}
	}
	return out
}

// fullVersion completes "1.35" to the release of that minor that can be built here.
func fullVersion(v string) string {
	v = strings.TrimPrefix(v, "v")
	for _, known := range builds.KnownReleases() {
		if strings.HasPrefix(known, v+".") {
			return known
		}
	}
	return v
}

// start makes sure that a supervisor runs with the present configuration and waits for its processes.
func (u *Up) start(ctx context.Context, say func(string, ...any)) error {
	p := u.Settings.paths()
	if err := rememberHost(p, kernelSettings, u.Settings.PodEgress); err != nil {
		return err
	}
	if err := writeInstance(Instance{StateDir: p.State}); err != nil {
		return err
	}
	cfg := u.Settings.supervisorConfig(filepath.Join(u.Settings.Root, builds.KubernetesBinary(u.Settings.KubernetesVersion)))
	if err := cfg.write(p); err != nil {
		return err
	}
	if err := linkPrograms(p, cfg.KubernetesBinary); err != nil {
		return err
	}
	pki, err := components.PKI(p, u.Clock.Now())
	if err != nil {
		return err
	}
	hash, err := configHash(p, cfg, pki)
	if err != nil {
		return err
	}
	st, err := supervisor.ReadStatus(p.Status())
	alive := err == nil && st.Alive()
	if alive {
		same, err := sameContent(u.Executable, p.Bin(supervisorProgram))
		if err != nil {
			return err
		}
		if why := stale(st, hash, same); why != "" {
			say("restarting the supervisor, because %s", why)
			if err := u.stopSupervisor(ctx, st); err != nil {
				return err
			}
			alive = false
		}
	}
	ended := make(chan error, 1)
	if !alive {
		if err := u.launch(p, ended); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-ended:
			cancel(fmt.Errorf("the supervisor has ended (%w); the end of its log %s:\n%s", err, p.SupervisorLog(), tail(p.SupervisorLog())))
		case <-ctx.Done():
		}
	}()
	return u.display.Until(ctx, func(context.Context) (bool, string) {
		st, err := supervisor.ReadStatus(p.Status())
		switch {
		case err != nil || !st.Alive():
			return false, "the supervisor (its log: " + p.SupervisorLog() + ")"
		case len(st.NotReady()) > 0:
			return false, strings.Join(st.NotReady(), ", ")
		}
		return true, ""
	})
}

func (u *Up) push(ctx context.Context, say func(string, ...any)) error {
	b := binaries(u.Settings.Root)
	say("sandbox and DNS")
	if err := pushBase(ctx, b, &u.images); err != nil {
		return err
	}
	say("examples")
	if err := pushExamples(ctx, b); err != nil {
		return err
	}
	say("our operators")
	if err := pushPlatform(ctx, b, &u.images); err != nil {
		return err
	}
	say("image of workers")
	if err := u.Settings.pushMachines(ctx, b, &u.images, say); err != nil {
		return err
	}
	for _, v := range u.releases() {
		say("release %s", v)
		if err := u.Settings.pushRelease(ctx, v, b, &u.images); err != nil {
			return err
		}
	}
	return nil
}

func (u *Up) addons(ctx context.Context, _ func(string, ...any)) error {
	c, _, err := u.client()
	if err != nil {
		return err
	}
	if err := applyAddons(ctx, c, u.images.CoreDNS); err != nil {
		return err
	}
	return u.display.Until(ctx, func(ctx context.Context) (bool, string) { return clusterReady(ctx, c) })
}

// clusterReady tells whether the node and the DNS server are ready.
func clusterReady(ctx context.Context, c client.Reader) (bool, string) {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: components.NodeName}, node); err != nil {
		return false, "the node to register"
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
			return false, "the node: " + cond.Message
		}
	}
	dns := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, dns); err != nil {
		return false, "Deployment kube-system/coredns"
	}
	if dns.Status.ObservedGeneration < dns.Generation || dns.Status.UpdatedReplicas < 1 || dns.Status.AvailableReplicas < 1 {
		return false, "a pod of Deployment kube-system/coredns"
	}
	return true, ""
}

func (u *Up) client() (client.Client, *rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", u.Settings.paths().Kubeconfig())
	if err != nil {
		return nil, nil, fmt.Errorf("reading the management cluster's kubeconfig: %w", err)
	}
	cfg.QPS = -1 // the API server's own fairness is enough
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("building a scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("building a client: %w", err)
	}
	return c, cfg, nil
}

// linkPrograms makes <state>/bin/etcd and so on, links to the bundle.
func linkPrograms(p components.Paths, bundle string) error {
	for _, name := range []string{components.Etcd, components.APIServer, components.ControllerManager, components.Scheduler, components.Kubelet, components.Proxy} {
		link := p.Bin(name)
		if have, err := os.Readlink(link); err == nil && have == bundle {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			return fmt.Errorf("creating the folder of programs: %w", err)
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("replacing %s: %w", link, err)
		}
		if err := os.Symlink(bundle, link); err != nil {
			return fmt.Errorf("linking %s: %w", link, err)
		}
	}
	return nil
}

// upTimeout is how long "up" may take by default: a cold build of Kubernetes on two cores is most of it.
const upTimeout = 60 * time.Minute

// DefaultTimeout is the default of --timeout.
const DefaultTimeout = upTimeout
