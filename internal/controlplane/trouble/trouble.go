// Package trouble finds out why pods of a control plane do not run: what the scheduler, a kubelet, an admission plugin or the storage says.
//
// Find is pure; Look reads what it needs. What others wrote is cut to a bounded length, and what may hold credentials is taken out. Counts
// and times that change by themselves are left out, so that a condition with the text is not written again and again.
package trouble

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
)

// Reasons, as conditions have them. Where the kubelet or the scheduler has a word for it, it is theirs.
const (
	// Refused: the API server takes no such pod: a quota, a level of Pod Security, a webhook.
	Refused = "PodRefused"
	// VolumePending: a volume claim of the pod can't be bound.
	VolumePending = "VolumePending"
	// Unschedulable: no node has room for the pod, or none suits it.
	Unschedulable = "Unschedulable"
	// ImagePullBackOff stands for ErrImagePull, too, which takes turns with it.
	ImagePullBackOff = "ImagePullBackOff"
	// InvalidImageName, CreateContainerConfigError, CreateContainerError and RunContainerError are the kubelet's.
	InvalidImageName           = "InvalidImageName"
	CreateContainerConfigError = "CreateContainerConfigError"
	CreateContainerError       = "CreateContainerError"
	RunContainerError          = "RunContainerError"
	// OOMKilled: a container ended because its memory was used up.
	OOMKilled = "OOMKilled"
	// CrashLoopBackOff: a container exits again and again.
	CrashLoopBackOff = "CrashLoopBackOff"
	// Evicted: a node had too little of something.
	Evicted = "Evicted"
	// NotStarted: containers have not been created for longer than it takes, for example because a volume can't be mounted.
	NotStarted = "ContainerCreating"
)

// causes are the reasons, what comes first in the life of a pod first: it is the likelier cause of the others.
var causes = []string{Refused, VolumePending, Unschedulable, InvalidImageName, ImagePullBackOff, CreateContainerConfigError, CreateContainerError, RunContainerError,
	NotStarted, OOMKilled, CrashLoopBackOff, Evicted}

// Reasons lists them.
func Reasons() []string { return slices.Clone(causes) }

const (
	// maxText bounds what is taken over from others.
	maxText = 300
	// slowStart is how long containers may take to be created. Images of a few hundred MiB take some tens of seconds.
	slowStart = time.Minute
	// crashes is how often a container that is not ready has ended when that is told although it runs at the moment.
	crashes = 3
)

// Trouble is why something of a component does not run.
type Trouble struct {
	Component string
	Reason    string
	// Message names the pod, and says it in a sentence.
	Message string

	name string
}

// Claim is a volume claim that is not bound.
type Claim struct {
	Name      string
	Component string
	// Warning is the last that was said about it; empty: nothing, it may just wait for its pod.
	Warning string
}

// Input is what Find looks at, all of one namespace.
type Input struct {
	Pods         []corev1.Pod
	Deployments  []appsv1.Deployment
	StatefulSets []appsv1.StatefulSet
	Claims       []Claim
	// Warnings are the last warnings about objects, by kind/name.
	Warnings map[string]string
	Now      time.Time
}

// Find lists all troubles, the likeliest root cause first: etcd before kube-apiserver before the rest, and of one component what comes first
// in the life of a pod.
func Find(in Input) []Trouble {
	var all []Trouble
	for i := range in.Deployments {
		all = append(all, refusedDeployment(&in.Deployments[i])...)
	}
	for i := range in.StatefulSets {
		all = append(all, refusedSet(&in.StatefulSets[i], in.Warnings)...)
	}
	for _, c := range in.Claims {
		if c.Warning != "" {
			all = append(all, Trouble{c.Component, VolumePending, fmt.Sprintf("volume claim %s can't be bound: %s", c.Name, Clean(c.Warning)), c.Name})
		}
	}
	for i := range in.Pods {
		if t := ofPod(&in.Pods[i], in); t != nil {
			all = append(all, *t)
		}
	}
	slices.SortFunc(all, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(order(a.Component), order(b.Component)), cmp.Compare(slices.Index(causes, a.Reason), slices.Index(causes, b.Reason)),
			cmp.Compare(a.Component, b.Component), cmp.Compare(a.name, b.name))
	})
	return all
}

// order of components by who needs whom.
func order(name string) int {
	switch {
	case name == names.ControlPlaneOperator:
		return 0
	case name == names.Etcd, strings.HasPrefix(name, names.Etcd+"-"):
		return 1
	case name == names.KubeAPIServer:
		return 2
	}
	return 3
}

// Of is the first trouble of a component; nil: none.
func Of(all []Trouble, name string) *Trouble {
	for i := range all {
		if all[i].Component == name {
			return &all[i]
		}
	}
	return nil
}

func refusedDeployment(d *appsv1.Deployment) []Trouble {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return []Trouble{{d.Name, Refused, fmt.Sprintf("pods of Deployment %s are refused: %s", d.Name, Clean(c.Message)), d.Name}}
		}
	}
	return nil
}

func refusedSet(s *appsv1.StatefulSet, warnings map[string]string) []Trouble {
	said, told := warnings["StatefulSet/"+s.Name]
	if s.Status.Replicas >= ptr.Deref(s.Spec.Replicas, 1) || !told {
		return nil
	}
	return []Trouble{{s.Name, Refused, fmt.Sprintf("pods of StatefulSet %s are refused: %s", s.Name, Clean(said)), s.Name}}
}

// ofPod is what is wrong with one pod; nil: nothing, or nothing yet.
func ofPod(pod *corev1.Pod, in Input) *Trouble {
	say := func(reason, format string, args ...any) *Trouble {
		return &Trouble{pod.Labels[component.ControlPlaneComponentLabel], reason, "pod " + pod.Name + " " + fmt.Sprintf(format, args...), pod.Name}
	}
	switch {
	case !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodSucceeded:
		return nil
	case pod.Status.Phase == corev1.PodFailed:
		if pod.Status.Reason == Evicted {
			return say(Evicted, "was evicted: %s", Clean(pod.Status.Message))
		}
		return nil // its owner makes another one
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return say(Unschedulable, "fits on no node: %s", Clean(c.Message))
		}
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if reason, text := ofContainer(s); reason != "" {
			return say(reason, "%s", text)
		}
	}
	if pod.Spec.NodeName != "" && pod.Status.StartTime != nil && in.Now.Sub(pod.Status.StartTime.Time) > slowStart && slices.ContainsFunc(pod.Status.ContainerStatuses, creating) {
		if said := in.Warnings["Pod/"+pod.Name]; said != "" {
			return say(NotStarted, "on node %s does not start: %s", pod.Spec.NodeName, Clean(said))
		}
	}
	return nil
}

func creating(s corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == NotStarted
}

// ofContainer says why a container does not run.
func ofContainer(s corev1.ContainerStatus) (reason, text string) {
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable":
			return ImagePullBackOff, fmt.Sprintf("can't get image %s of container %s%s", s.Image, s.Name, pullText(w))
		case InvalidImageName:
			return InvalidImageName, fmt.Sprintf("names an image for container %s that is none: %s", s.Name, Clean(s.Image))
		case CreateContainerConfigError, CreateContainerError, RunContainerError:
			return w.Reason, fmt.Sprintf("can't start container %s: %s", s.Name, Clean(w.Message))
		}
	}
	ended := s.State.Terminated
	if ended == nil {
		ended = s.LastTerminationState.Terminated
	}
	backOff := s.State.Waiting != nil && s.State.Waiting.Reason == CrashLoopBackOff
	if ended == nil || s.Ready || ended.ExitCode == 0 || !backOff && s.RestartCount < crashes {
		return "", ""
	}
	if ended.Reason == OOMKilled {
		return OOMKilled, fmt.Sprintf("runs out of memory: container %s was killed at its limit, or because the node had none left", s.Name)
	}
	return CrashLoopBackOff, fmt.Sprintf("does not stay up: container %s ends again and again, last with exit code %d (%s); see its log", s.Name, ended.ExitCode, cmp.Or(ended.Reason, "Error"))
}

// pullText leaves out that the kubelet backs off, which takes turns with the cause.
func pullText(w *corev1.ContainerStateWaiting) string {
	if text := Clean(w.Message); text != "" && !strings.HasPrefix(text, "Back-off pulling image") {
		return ": " + text
	}
	return ""
}

var (
	userInfo   = regexp.MustCompile(`://[^/@\s"']+@`)
	query      = regexp.MustCompile(`\?[^\s"']+`)
	bearer     = regexp.MustCompile(`(?i)(bearer|basic|token|password)[=: ]+[^\s"',]+`)
	podName    = regexp.MustCompile(`^(?:create Pod \S+ in StatefulSet \S+ failed error: )?pods "[^"]*" is forbidden: `)
	preemption = regexp.MustCompile(`\s*preemption: .*$`)
)

// Clean takes credentials, and what changes from try to try, out of a text of others, makes it one line and bounds it.
func Clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	s = podName.ReplaceAllString(s, "")
	s = preemption.ReplaceAllString(s, "")
	s = userInfo.ReplaceAllString(s, "://…@")
	s = query.ReplaceAllString(s, "?…")
	s = bearer.ReplaceAllString(s, "$1 …")
	return clip.Over(s, maxText, "…")
}

// Name is that of the pod, volume claim or workload that Message is about.
func (t Trouble) Name() string { return t.name }
