package dump

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/kube/redact"
)

const (
	// maxLogBytes bounds the log of one container; the newest part is what matters.
	maxLogBytes = 5 << 20
	maxLogLines = 20_000
)

// logs writes the logs of all containers of a namespace's Pods, and those of the run before where one was restarted.
func (d *dumper) logs(ctx context.Context, namespace string) {
	pods := &corev1.PodList{}
	for err := range read.Pages(ctx, d.client, pods, pageSize, client.InNamespace(namespace)) {
		if err != nil {
			d.problem("listing Pods of namespace %s: %v", namespace, err)
			return
		}
		for i := range pods.Items {
			d.podLogs(ctx, &pods.Items[i])
		}
	}
}

func (d *dumper) podLogs(ctx context.Context, pod *corev1.Pod) {
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, status := range statuses {
		if status.State.Running != nil || status.State.Terminated != nil {
			d.containerLog(ctx, pod, status.Name, false)
		}
		if status.LastTerminationState.Terminated != nil {
			d.containerLog(ctx, pod, status.Name, true)
		}
	}
}

func (d *dumper) containerLog(ctx context.Context, pod *corev1.Pod, container string, previous bool) {
	stream, err := d.clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true, TailLines: ptr.To[int64](maxLogLines), LimitBytes: ptr.To[int64](maxLogBytes),
	}).Stream(ctx)
	if err != nil {
		d.problem("reading the log of Pod %s/%s, container %s: %v", pod.Namespace, pod.Name, container, err)
		return
	}
	defer stream.Close()
	// The kubelet may not keep to the limit.
	raw, err := io.ReadAll(io.LimitReader(stream, maxLogBytes))
	if err != nil {
		d.problem("reading the log of Pod %s/%s, container %s: %v", pod.Namespace, pod.Name, container, err)
	}
	if len(raw) == 0 {
		return
	}
	file := container + ".log"
	if previous {
		file = container + ".previous.log"
	}
	d.write([]byte(redact.Text(string(raw))), "namespaces", pod.Namespace, "logs", pod.Name, file)
}
