package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/local/network"
)

const (
	// gathering is how long further changes are waited for: many pods start at a time, and rules are replaced as a whole.
	gathering = 50 * time.Millisecond
	// retry is how long to wait when the kernel refused rules.
	retry = 2 * time.Second
	// look is how often the kernel is asked whether it still has the rules: whoever loads a firewall anew takes them away.
	look = 30 * time.Second
	// maxOutput bounds what of nft's output goes into an error.
	maxOutput = 2000
)

// Options say what to work with.
type Options struct {
	Config *rest.Config
	Clock  clock.Clock
	Log    logr.Logger
	// Apply hands a script to nft; nil: the machine's own.
	Apply func(ctx context.Context, script string) error
	// Has tells whether the kernel has a chain of our table in a family; nil: the machine's own.
	Has func(family byte, chain string) (bool, error)
}

// Run enforces policies until ctx ends. The API server may come up later, or go away and come back; rules stay as they are meanwhile.
func Run(ctx context.Context, opts Options) error {
	client, err := kubernetes.NewForConfig(opts.Config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if opts.Apply == nil {
		opts.Apply = nft
	}
	if opts.Has == nil {
		opts.Has = func(family byte, chain string) (bool, error) { return network.HasChain(family, Table, chain) }
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim))
	pods, namespaces, policies := factory.Core().V1().Pods(), factory.Core().V1().Namespaces(), factory.Networking().V1().NetworkPolicies()
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // somebody has told already
		}
	}
	for informer, matters := range map[cache.SharedIndexInformer]func(before, now any) bool{
		pods.Informer(): podMatters, namespaces.Informer(): labelsMatter, policies.Informer(): specMatters,
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { tell() }, DeleteFunc: func(any) { tell() },
			UpdateFunc: func(before, now any) {
				if matters(before, now) {
					tell()
				}
			},
		})
		if err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("the cache of %s was not filled before the end", kind)
		}
	}
	enforcer := enforcer{Options: opts, pods: pods.Lister(), namespaces: namespaces.Lister(), policies: policies.Lister()}
	enforcer.frame(ctx)
	tell()
	enforcer.loop(ctx, changed, tell)
	return nil
}

type enforcer struct {
	Options
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	policies   networkinglisters.NetworkPolicyLister
	applied    string
	framed     bool // the kernel has taken Frames
}

func (e *enforcer) loop(ctx context.Context, changed <-chan struct{}, again func()) {
	due := e.Clock.After(look)
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-due:
			due = e.Clock.After(look)
			if !e.lost() {
				continue
			}
			e.Log.Info("the kernel has lost the rules of network policies; putting all of them in force again")
			e.applied = ""
			e.frame(ctx)
		}
		pause := gathering
		if err := e.enforce(ctx); err != nil && ctx.Err() == nil {
			e.Log.Error(err, "enforcing network policies")
			pause = retry
			again()
		}
		select {
		case <-ctx.Done():
			return
		case <-e.Clock.After(pause):
		}
	}
}

// lost tells whether somebody has taken rules away that were in force.
func (e *enforcer) lost() bool {
	gone := func(family byte, chain string) bool {
		has, err := e.Has(family, chain)
		if err != nil {
			e.Log.Error(err, "looking whether network policies are in force")
		}
		return err == nil && !has
	}
	return e.applied != "" && gone(network.FamilyInet, "pods") || e.framed && gone(network.FamilyBridge, "frames")
}

// frame keeps other protocols than IPv4 from pods. A kernel that can't do so enforces policies all the same.
func (e *enforcer) frame(ctx context.Context) {
	if err := e.Apply(ctx, Frames); err != nil {
		e.Log.Error(err, "pods can reach each other by other protocols than IPv4")
		return
	}
	e.framed = true
}

// enforce hands the rules to the kernel unless it has them.
func (e *enforcer) enforce(ctx context.Context) error {
	state, err := e.state()
	if err != nil {
		return err
	}
	script, problems := Rules(state)
	if script == e.applied {
		return nil
	}
	if err := errors.Join(problems...); err != nil {
		e.Log.Error(err, "a policy that can't be understood allows nothing")
	}
	if err := e.Apply(ctx, script); err != nil {
		return err
	}
	e.applied = script
	return nil
}

func (e *enforcer) state() (State, error) {
	s := State{Namespaces: map[string]map[string]string{}}
	all, err := e.pods.List(labels.Everything())
	if err != nil {
		return s, fmt.Errorf("listing pods: %w", err)
	}
	for _, p := range all {
		if address, ok := addressOf(p); ok {
			s.Pods = append(s.Pods, Pod{Namespace: p.Namespace, Name: p.Name, Address: address, Created: p.CreationTimestamp.Time, Labels: p.Labels, Ports: namedPorts(p)})
		}
	}
	namespaces, err := e.namespaces.List(labels.Everything())
	if err != nil {
		return s, fmt.Errorf("listing namespaces: %w", err)
	}
	for _, ns := range namespaces {
		s.Namespaces[ns.Name] = ns.Labels
	}
	if s.Policies, err = e.policies.List(labels.Everything()); err != nil {
		return s, fmt.Errorf("listing network policies: %w", err)
	}
	return s, nil
}

// addressOf is a pod's own address. One that has ended has given it back, and one with the node's network has none.
func addressOf(p *corev1.Pod) (netip.Addr, bool) {
	if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(p.Status.PodIP)
	return address, err == nil && address.Is4()
}

func namedPorts(p *corev1.Pod) (ports []corev1.ContainerPort) {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, port := range c.Ports {
			if port.Name != "" {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

// trim leaves of a pod what rules follow from: pods are the many among what is watched.
func trim(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		if o, ok := obj.(metav1.Object); ok {
			o.SetManagedFields(nil)
		}
		return obj, nil
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, CreationTimestamp: p.CreationTimestamp, Labels: p.Labels},
		Spec:       corev1.PodSpec{HostNetwork: p.Spec.HostNetwork, Containers: []corev1.Container{{Ports: namedPorts(p)}}},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP},
	}
	return out, nil
}

func podMatters(before, now any) bool {
	a, b := before.(*corev1.Pod), now.(*corev1.Pod)
	was, had := addressOf(a)
	is, has := addressOf(b)
	return had != has || was != is || a.UID != b.UID || !maps.Equal(a.Labels, b.Labels)
}

func labelsMatter(before, now any) bool {
	return !maps.Equal(before.(metav1.Object).GetLabels(), now.(metav1.Object).GetLabels())
}

func specMatters(before, now any) bool {
	return before.(metav1.Object).GetGeneration() != now.(metav1.Object).GetGeneration() || before.(metav1.Object).GetUID() != now.(metav1.Object).GetUID()
}

// nft replaces the machine's rules.
func nft(ctx context.Context, script string) error {
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running nft: %w: %s", err, strings.TrimSpace(string(out[:min(len(out), maxOutput)])))
	}
	return nil
}
