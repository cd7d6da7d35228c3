package trouble

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/controlplane/component"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func pod(name, of string, edit ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{component.ControlPlaneComponentLabel: of}}}
	p.Status.Phase = corev1.PodPending
	for _, e := range edit {
		e(&p)
	}
	return p
}

func unschedulable(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
	}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", Image: "registry.example.com/x:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
	}
}

func ended(state corev1.ContainerState, reason string, code, restarts int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", RestartCount: restarts, State: state,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}})
	}
}

var (
	backOff = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container"}}
	running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
)

func TestFind(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want []string // "component reason: message"
	}{
		"When all is well it should say nothing": {in: Input{Pods: []corev1.Pod{pod("a", "etcd", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })}}},
		"When no node has room it should be in the scheduler's words, without those about preemption": {
			in:   Input{Pods: []corev1.Pod{pod("etcd-0", "etcd", unschedulable("0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."))}},
			want: []string{"etcd Unschedulable: pod etcd-0 fits on no node: 0/1 nodes are available: 1 Insufficient cpu."},
		},
		"When a pod is held by a scheduling gate it should be no trouble": {in: Input{Pods: []corev1.Pod{pod("m", "x", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulingGated"}}
		})}}},
		"When an image can't be pulled it should say which and why, without credentials": {
			in:   Input{Pods: []corev1.Pod{pod("kas-1", "kube-apiserver", waiting("ErrImagePull", `failed to pull: "https://me:hunter2@registry.example.com/v2/x?token=s3cret": 401 Unauthorized`))}},
			want: []string{`kube-apiserver ImagePullBackOff: pod kas-1 can't get image registry.example.com/x:1 of container main: failed to pull: "https://…@registry.example.com/v2/x?…": 401 Unauthorized`},
		},
		"When the kubelet backs off the reason should stay the same": {
			in:   Input{Pods: []corev1.Pod{pod("kas-1", "kube-apiserver", waiting("ImagePullBackOff", `Back-off pulling image "registry.example.com/x:1"`))}},
			want: []string{"kube-apiserver ImagePullBackOff: pod kas-1 can't get image registry.example.com/x:1 of container main"},
		},
		"When a Secret is missing it should be told": {
			in:   Input{Pods: []corev1.Pod{pod("a", "x", waiting("CreateContainerConfigError", `secret "etcd-tls" not found`))}},
			want: []string{`x CreateContainerConfigError: pod a can't start container main: secret "etcd-tls" not found`},
		},
		"When a container crashes it should say how it ended": {
			in:   Input{Pods: []corev1.Pod{pod("a", "x", ended(backOff, "Error", 2, 7))}},
			want: []string{"x CrashLoopBackOff: pod a does not stay up: container main ends again and again, last with exit code 2 (Error); see its log"},
		},
		"When it runs just now between two crashes the text should be the same": {
			in:   Input{Pods: []corev1.Pod{pod("a", "x", ended(running, "Error", 2, 7))}},
			want: []string{"x CrashLoopBackOff: pod a does not stay up: container main ends again and again, last with exit code 2 (Error); see its log"},
		},
		"When it ended once while its friends came up it should be no trouble": {in: Input{Pods: []corev1.Pod{pod("a", "x", ended(running, "Error", 1, 1))}}},
		"When memory ran out it should say so": {
			in:   Input{Pods: []corev1.Pod{pod("a", "x", ended(backOff, "OOMKilled", 137, 4))}},
			want: []string{"x OOMKilled: pod a runs out of memory: container main was killed at its limit, or because the node had none left"},
		},
		"When an init container fails it should be told": {
			in: Input{Pods: []corev1.Pod{pod("a", "x", func(p *corev1.Pod) {
				q := pod("", "", ended(backOff, "Error", 1, 4))
				p.Status.InitContainerStatuses = q.Status.ContainerStatuses
			})}},
			want: []string{"x CrashLoopBackOff: pod a does not stay up: container main ends again and again, last with exit code 1 (Error); see its log"},
		},
		"When a quota refuses pods of a Deployment it should be told without the name that changes": {
			in: Input{Deployments: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"}, Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "kube-scheduler-abc-xyz" is forbidden: exceeded quota: q, requested: cpu=10m, used: cpu=1, limited: cpu=1`}}}}}},
			want: []string{"kube-scheduler PodRefused: pods of Deployment kube-scheduler are refused: exceeded quota: q, requested: cpu=10m, used: cpu=1, limited: cpu=1"},
		},
		"When Pod Security refuses members of etcd it should be told": {
			in: Input{StatefulSets: []appsv1.StatefulSet{{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}},
				Warnings: map[string]string{"StatefulSet/etcd": `create Pod etcd-0 in StatefulSet etcd failed error: pods "etcd-0" is forbidden: violates PodSecurity "restricted:latest"`}},
			want: []string{`etcd PodRefused: pods of StatefulSet etcd are refused: violates PodSecurity "restricted:latest"`},
		},
		"When a volume can't be made it should come before the pod that waits for it": {
			in: Input{Pods: []corev1.Pod{pod("etcd-0", "etcd", unschedulable("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."))},
				Claims: []Claim{{"data-etcd-0", "etcd", "no storage class"}, {"data-etcd-1", "etcd", ""}}},
			want: []string{"etcd VolumePending: volume claim data-etcd-0 can't be bound: no storage class",
				"etcd Unschedulable: pod etcd-0 fits on no node: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
		},
		"When a volume can't be mounted for long it should say what the kubelet says": {
			in: Input{Now: noon, Pods: []corev1.Pod{pod("a", "x", waiting("ContainerCreating", ""), func(p *corev1.Pod) {
				p.Spec.NodeName, p.Status.StartTime = "n", &metav1.Time{Time: noon.Add(-2 * time.Minute)}
			})}, Warnings: map[string]string{"Pod/a": "MountVolume.SetUp failed: object not registered"}},
			want: []string{"x ContainerCreating: pod a on node n does not start: MountVolume.SetUp failed: object not registered"},
		},
		"When kube-apiserver crashes because etcd has no place etcd should come first": {
			in:   Input{Pods: []corev1.Pod{pod("a", "another", unschedulable("no")), pod("kas", "kube-apiserver", ended(backOff, "Error", 1, 9)), pod("etcd-0", "etcd", unschedulable("0/1"))}},
			want: []string{"etcd Unschedulable: pod etcd-0 fits on no node: 0/1", "kube-apiserver CrashLoopBackOff: pod kas does not stay up: container main ends again and again, last with exit code 1 (Error); see its log", "another Unschedulable: pod a fits on no node: no"},
		},
		"When a node evicted a pod it should say so": {
			in: Input{Pods: []corev1.Pod{pod("a", "x", func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
			})}},
			want: []string{"x Evicted: pod a was evicted: The node was low on resource: memory."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Find(tc.in) {
				got = append(got, f.Component+" "+f.Reason+": "+f.Message)
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When a text of others is long it should be bounded, in whole characters", func(t *testing.T) {
		g := NewWithT(t)
		got := Clean(strings.Repeat("ä", 1000))
		g.Expect(len(got)).To(BeNumerically("<=", maxText+len("…")))
		g.Expect(got).To(HaveSuffix("ä…"))
	})
}
