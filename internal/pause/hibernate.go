package pause

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Hibernation is what annotations hypershift.openshift.io/hibernate and hibernate-schedule ask for. What was ordered last holds: "true" and "false" until somebody
// changes them, a time to come until then, and from a time that has passed on what the schedule says after it.
func Hibernation(annotations map[string]string, now time.Time) Sleep {
	value, text := annotations[hyperv1.HibernateAnnotation], annotations[ScheduleAnnotation]
	ordered := Sleep{Pause: At(&value, now)}
	if text == "" {
		return ordered
	}
	schedule, err := ParseSchedule(text)
	if err != nil {
		ordered.Problem = err.Error()
		return ordered
	}
	woken := time.Time{}
	if value != "" {
		if woken, err = time.Parse(time.RFC3339, value); err != nil || ordered.Active {
			return ordered // a boolean, a time to come, or nonsense
		}
	}
	return schedule.scheduled(woken, now)
}

// Woken is the value of annotation hypershift.openshift.io/hibernate that ends sleep of a cluster with this schedule: the last time to sleep, which then counts no
// more. It is not now, which an operator whose clock is behind would take for a time until which to sleep. Empty: the schedule has not put anything to sleep.
func Woken(schedule string, now time.Time) string {
	s, err := ParseSchedule(schedule)
	if err != nil {
		return ""
	}
	slept := s.when(last(s.sleep, s.wall(now)))
	if slept.IsZero() {
		return ""
	}
	return slept.UTC().Format(time.RFC3339)
}

// WorkersOff says whether a HostedCluster is to have no machines now: it sleeps, is going to, or is not up again.
func WorkersOff(hc *hyperv1.HostedCluster, now time.Time) bool {
	c := meta.FindStatusCondition(hc.Status.Conditions, hyperv1.HostedClusterHibernated)
	return hc.DeletionTimestamp.IsZero() && (Hibernation(hc.Annotations, now).Active || c != nil && c.Reason != hyperv1.InvalidHibernateValueReason)
}

// Asleep says whether nobody is to expect that a hosted cluster serves: it sleeps, or is going to. One that wakes is expected to come up.
func Asleep(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, hyperv1.HostedClusterHibernated)
	if c == nil {
		return false
	}
	switch c.Reason {
	case hyperv1.WorkersStoppingReason, hyperv1.FallingAsleepReason, hyperv1.AsleepReason:
		return true
	}
	return false
}
