package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// Machine is what there is on the machine, by kind, with names for people. It is judged by count: a pod that was killed has another name.
type Machine map[string][]string

// LookAtMachine finds what hosted clusters and pods leave behind.
func LookAtMachine(ctx context.Context, stateDir string) (Machine, error) {
	m := Machine{}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	m["mounts"] = nonEmpty(mounts)
	for kind, patterns := range map[string][]string{
		"control groups": {"/sys/fs/cgroup/*/*/kubepods*/*/pod*", "/sys/fs/cgroup/*/*/kubepods*/pod*", "/sys/fs/cgroup/*/kubepods*/*/pod*", "/sys/fs/cgroup/*/kubepods*/pod*"},
		"volumes":        {filepath.Join(stateDir, "volumes/*")},
	} {
		for _, p := range patterns {
			found, _ := filepath.Glob(p)
			m[kind] = append(m[kind], found...)
		}
	}
	for kind, command := range map[string][]string{"links": {"ip", "-o", "link"}, "packet filter rules": {"nft", "-s", "list", "ruleset"}} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
		m[kind] = nonEmpty(out)
	}
	// A chain without rules does nothing: kube-proxy empties those of Services that are gone, and deletes them when it has something else to do, too.
	m["packet filter rules"] = slices.DeleteFunc(m["packet filter rules"], opens)
	networks := map[uint64]string{}
	spaces, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, file := range spaces {
		var st unix.Stat_t
		if unix.Stat(file, &st) == nil {
			networks[st.Ino] = fmt.Sprintf("%d, of %s", st.Ino, strings.TrimSuffix(file, "/ns/net"))
		}
	}
	m["network namespaces"] = slices.Sorted(maps.Values(networks))
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		if raw, err := os.ReadFile(file); err == nil && (bytes.Contains(raw, []byte(stateDir+"/")) || bytes.Contains(raw, []byte("/pause\x00"))) {
			m["processes"] = append(m["processes"], string(bytes.ReplaceAll(raw, []byte{0}, []byte(" "))))
		}
	}
	return m, nil
}

// stillFor is how long nothing may come or go on the machine before it is taken for what there is when nobody harms anything.
const stillFor = 20 * time.Second

// StillMachine looks until all pods run and nothing has come or gone for a while: a pod that is being replaced, or a container that waits to be started
// again, would make less of what there was, and its return something that is left. It is an error when that doesn't happen within patience.
func StillMachine(ctx context.Context, w *world.World, patience time.Duration) (Machine, error) {
	seen, err := LookAtMachine(ctx, w.StateDir)
	if err != nil {
		return nil, err
	}
	since := time.Now()
	err = world.Until(ctx, patience, func(ctx context.Context) error {
		now, err := LookAtMachine(ctx, w.StateDir)
		if err == nil {
			err = PodsRun(ctx, w)
		}
		was := seen
		if now != nil {
			seen = now
		}
		if err != nil || !maps.Equal(seen.Counts(), was.Counts()) {
			since = time.Now()
		}
		if err == nil && time.Since(since) < stillFor {
			err = fmt.Errorf("something came or went on the machine %s ago: %v", time.Since(since).Round(time.Second), seen.Counts())
		}
		return err
	})
	return seen, err
}

// PodsRun returns an error while a pod of the management cluster or of the demo cluster starts, is not ready, or is being deleted. Pods that have ended have
// nothing on the machine.
func PodsRun(ctx context.Context, w *world.World) error {
	demo, err := w.Hosted(ctx, plan.Demo)
	if err != nil {
		return err
	}
	for _, cfg := range []*rest.Config{w.Management, demo} {
		c, err := world.NewClient(cfg)
		if err != nil {
			return err
		}
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods); err != nil {
			return err
		}
		for i := range pods.Items {
			if err := podRuns(&pods.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func podRuns(p *corev1.Pod) error {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil
	}
	if !p.DeletionTimestamp.IsZero() {
		return fmt.Errorf("pod %s/%s is being deleted", p.Namespace, p.Name)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("pod %s/%s, which is %s, is not ready", p.Namespace, p.Name, p.Status.Phase)
}

// opens says that a line of a ruleset is the head of a table, chain, set or map, and no rule.
func opens(line string) bool { return strings.HasSuffix(line, "{") }

func nonEmpty(text []byte) []string {
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line != "}" {
			lines = append(lines, line)
		}
	}
	return lines
}

// Counts are what a log has room for.
func (m Machine) Counts() map[string]int {
	counts := map[string]int{}
	for kind, names := range m {
		counts[kind] = len(names)
	}
	return counts
}

// maxNames of what there was not before are named.
const maxNames = 12

// More says what there is more of than before, and names what is new; "" when nothing.
func (m Machine) More(before Machine) string {
	var more []string
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if len(m[kind]) <= len(before[kind]) {
			continue
		}
		fresh := slices.DeleteFunc(slices.Clone(m[kind]), func(name string) bool { return slices.Contains(before[kind], name) })
		more = append(more, fmt.Sprintf("there were %d %s, there are %d: %.1000s", len(before[kind]), kind, len(m[kind]), strings.Join(fresh[:min(len(fresh), maxNames)], "; ")))
	}
	return strings.Join(more, "; ")
}

// mine says that a name or a namespace is of something that the adversary made.
func mine(namespace, name string) bool {
	return strings.HasPrefix(namespace, world.Clusters) || strings.HasPrefix(name, world.Clusters) || strings.Contains(name, "-"+world.Clusters+"-")
}

// LeftObjects names what is left of the adversary's objects in an API server, of every resource that discovery shows, but for events, which end by themselves.
func LeftObjects(ctx context.Context, cfg *rest.Config) ([]string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	quiet := rest.CopyConfig(cfg)
	quiet.WarningHandlerWithContext = rest.NoWarnings{}
	m, err := metadata.NewForConfig(quiet)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") || r.Kind == "Event" {
				continue
			}
			objects, err := m.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // shown, and served by nobody
			}
			for _, o := range objects.Items {
				if mine(o.Namespace, o.Name) || o.Labels[world.Label] != "" {
					left[strings.TrimPrefix(fmt.Sprintf("%s %s/%s", r.Kind, o.Namespace, o.Name), "/")] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(left)), nil
}

// Orphans names pods on nodes that are gone.
func Orphans(ctx context.Context, cfg *rest.Config) ([]string, error) {
	c, err := world.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	pods, nodes := &corev1.PodList{}, &corev1.NodeList{}
	// Pods first: a node that comes meanwhile has none of these.
	if err := errors.Join(c.List(ctx, pods), c.List(ctx, nodes)); err != nil {
		return nil, err
	}
	return orphans(pods.Items, nodes.Items), nil
}

func orphans(pods []corev1.Pod, nodes []corev1.Node) []string {
	there := map[string]bool{"": true} // not scheduled yet
	for _, n := range nodes {
		there[n.Name] = true
	}
	var out []string
	for _, p := range pods {
		if !there[p.Spec.NodeName] {
			out = append(out, fmt.Sprintf("Pod %s/%s of node %s, which is gone", p.Namespace, p.Name, p.Spec.NodeName))
		}
	}
	return out
}
