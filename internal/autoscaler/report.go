package autoscaler

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/apply"
)

// recorder is what reports need of an EventRecorder of events.k8s.io.
type recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// maxEvents bounds the events of a kind in one pass.
const maxEvents = 20

// maxNote is what an event may hold.
const maxNote = 1000

// report tells both clusters what was done, and why other things were not.
func (l *Loop) report(ctx context.Context, obs *Observed, p Plan, grown []Growth, removed []Removal) error {
	for _, g := range grown {
		l.ManagementEvents.Eventf(g.Group.Object, nil, corev1.EventTypeNormal, "ScaledUp", "ScaleUp", "%s", cut(fmt.Sprintf("from %d to %d machines: %s", g.From, g.To, g.Reason)))
		for i, pod := range g.Pods {
			if i >= maxEvents {
				break
			}
			l.HostedEvents.Eventf(pod, nil, corev1.EventTypeNormal, "TriggeredScaleUp", "ScaleUp", "NodePool %s grows from %d to %d machines (at most %d)", g.Group.Name, g.From, g.To, g.Group.Max)
		}
	}
	for _, r := range removed {
		l.ManagementEvents.Eventf(r.Group.Object, nil, corev1.EventTypeNormal, "ScaledDown", "ScaleDown", "%s", cut(fmt.Sprintf("removing machine %s: %s", r.Machine, r.Reason)))
		for _, n := range obs.Nodes {
			if n.Name == r.Node {
				l.HostedEvents.Eventf(n, nil, corev1.EventTypeNormal, "ScaleDown", "ScaleDown", "%s", cut(r.Reason))
			}
		}
	}
	l.tellHelpless(p.Helpless)
	return l.publish(ctx, statusText(obs, p))
}

// tellHelpless tells pods why nothing is done for them, when that has changed.
func (l *Loop) tellHelpless(list []Verdict) {
	told := map[string]string{}
	for i, v := range list {
		if i >= maxEvents {
			break
		}
		key := string(v.Pod.UID)
		if told[key] = v.Reason; l.told[key] != v.Reason {
			l.HostedEvents.Eventf(v.Pod, nil, corev1.EventTypeNormal, "NotTriggerScaleUp", "ScaleUp", "%s", cut("no NodePool grows for it: "+v.Reason))
		}
	}
	l.told = told
}

// statusText holds nothing that changes by itself with time, so that it is written only when something has happened.
func statusText(obs *Observed, p Plan) string {
	b := &strings.Builder{}
	switch {
	case len(p.Helpless) > 0:
		fmt.Fprintf(b, "pods that fit on no node that could be made: %d\n", len(p.Helpless))
	default:
		b.WriteString("every pod fits, or will on machines that were asked for\n")
	}
	if p.Idle != "" {
		fmt.Fprintf(b, "no node is removed: %s\n", p.Idle)
	}
	for _, g := range obs.Groups {
		fmt.Fprintf(b, "NodePool %s: %d machines (between %d and %d)", g.Name, g.Replicas, g.Min, g.Max)
		if note := p.Notes[g.Name]; note != "" {
			fmt.Fprintf(b, "; %s", note)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// publish writes the status where users of the hosted cluster look for it.
func (l *Loop) publish(ctx context.Context, text string) error {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: StatusConfigMap},
		Data:       map[string]string{statusKey: text},
	}
	if err := apply.New(l.Hosted, FieldOwner).Apply(ctx, cm); err != nil {
		return fmt.Errorf("reporting in the hosted cluster: %w", err)
	}
	return nil
}

func cut(s string) string { return clip.Over(s, maxNote, "...") }
