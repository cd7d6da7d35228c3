package why

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/rolls"
)

// shownRolls is how many replacements an answer tells of.
const shownRolls = 3

// history tells why the machines of a pool were replaced, for a NodePool and for a Machine of it.
func history(s *scene, it *item) []string {
	var pool *item
	switch it.Kind {
	case kindNodePool:
		pool = it
	case kindMachine:
		if key, ok := names.ParseBackReference(it.meta.Annotations[hyperv1.NodePoolAnnotation]); ok {
			pool = s.byName[Object{kindNodePool, key.Namespace, key.Name}]
		}
	}
	if pool == nil {
		return nil
	}
	var out []string
	if m, ok := it.typed.(*clusterv1.Machine); ok && it.deleted != nil {
		out = append(out, replaced(m, pool)...)
	}
	note, ok := rolls.Parse(pool.meta.Annotations[hyperv1.NodePoolRollsAnnotation])
	if !ok {
		return out
	}
	for _, r := range note.Rolls[:min(len(note.Rolls), shownRolls)] {
		out = append(out, fmt.Sprintf("machines of NodePool %s were replaced as of %s: %s", pool.Name, r.At.UTC().Format(time.RFC3339), Clean(r.String())))
	}
	return out
}

// replaced tells why one machine goes, as far as its conditions and its pool say.
func replaced(m *clusterv1.Machine, pool *item) []string {
	for _, c := range m.Status.Conditions {
		switch {
		case c.Type == clusterv1.MachineHealthCheckSucceededCondition && c.Status == no:
			return []string{"it is being replaced as unhealthy: " + Clean(c.Message)}
		case c.Type == clusterv1.MachineUpToDateCondition && c.Status == no:
			return []string{"it is being replaced as out of date: " + Clean(c.Message)}
		}
	}
	if pool.deleted != nil {
		return []string{"its NodePool is being deleted"}
	}
	return nil
}

// lastRoll is why the machines of a pool are being replaced at present; empty: not known.
func lastRoll(pool *item) string {
	note, ok := rolls.Parse(pool.meta.Annotations[hyperv1.NodePoolRollsAnnotation])
	if !ok || len(note.Rolls) == 0 {
		return ""
	}
	return Clean(note.Rolls[0].String())
}
