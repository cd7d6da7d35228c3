package etcdrecovery

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// The data of a restore in place is in, and users write, long before its command has ended: that waits for the control plane, and cleans up. Who runs the command
// again, because it was killed meanwhile, must not lose what was written since. So the restore stays noted until the command's last step, which calls Forget.

// restoredAnnotation on the StatefulSet of the main etcd is such a restore: when its data came, and its URL. A restore of another URL replaces it once its data is in.
const restoredAnnotation = "etcd.hypershift.openshift.io/restored-in-place"

func restoredText(url string, at time.Time) string { return at.UTC().Format(time.RFC3339) + " " + url }

// RestoredAt says when the data of a snapshot came in place, by a command that has not ended; empty: no such command is known.
func RestoredAt(set *appsv1.StatefulSet, url string) string {
	at, of, _ := strings.Cut(set.Annotations[restoredAnnotation], " ")
	if of != url {
		return ""
	}
	return at
}

// isRestored says, also to the user, whether nothing is to be restored any more.
func (q Quorum) isRestored(set *appsv1.StatefulSet) bool {
	if q.Snapshot == nil {
		return false
	}
	at := RestoredAt(set, q.Snapshot.URL)
	if at != "" {
		q.say("%s was restored at %s: it is not restored again, and what was written since stays", q.Snapshot.URL, at)
	}
	return at != ""
}

// Forget is the last step of a restore in place: from now on, its URL is restored again by whoever asks for it.
func (q Quorum) Forget(ctx context.Context) error {
	q = q.patient()
	return q.await(ctx, "the restore to end", func(ctx context.Context) (bool, error) {
		set, err := q.set(ctx)
		if err != nil || RestoredAt(set, q.Snapshot.URL) == "" {
			return err == nil, err
		}
		// Another restore may end just now, whose note has to stay.
		return true, q.patch(ctx, set, fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:null}}}`, set.ResourceVersion, restoredAnnotation))
	})
}
