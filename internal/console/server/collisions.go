package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/why"
)

// maxCollisions bounds how many objects of others are looked at for a revision.
const maxCollisions = 20

// collision is an object that a revision may not write, because it was there before and belongs to somebody else.
type collision struct {
	object
	// Owner says for people whose it is: "Package other, by its ObjectSet other-1", "Deployment web", "Helm release tools/agent".
	Owner string `json:"owner"`
}

// collisionsOf are the objects because of which a revision is refused, by what its condition says, and whose they are. Of each only metadata is read, with
// the rights of who looks; of Secrets not even that.
func collisionsOf(ctx context.Context, c client.Reader, set *packagesv1.ObjectSet) []collision {
	available := conditions.Get(set.Status.Conditions, packagesv1.ConditionAvailable)
	if available == nil || available.Reason != packagesv1.ReasonCollisionDetected || set.Spec.LifecycleState == packagesv1.LifecycleStateArchived {
		return nil
	}
	var out []collision
	for i := range set.Spec.Phases {
		for j := range set.Spec.Phases[i].Objects {
			u := &set.Spec.Phases[i].Objects[j].Object
			o := nameOf(u, set.Namespace)
			if !refuses(available.Message, o) {
				continue
			}
			if len(out) == maxCollisions {
				return out
			}
			found := collision{object: o}
			if o.Kind == "Secret" {
				found.Owner = "another owner; Secrets are not read"
				out = append(out, found)
				continue
			}
			m := &metav1.PartialObjectMetadata{}
			m.SetGroupVersionKind(u.GroupVersionKind())
			err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, m)
			switch {
			case apierrors.IsNotFound(err):
				continue // gone since
			case apierrors.IsForbidden(err):
				found.Owner = "another owner: you may not read the object"
			case err != nil:
				found.Owner = "another owner: the object can't be read now"
			default:
				found.Owner = ownerOf(m)
			}
			out = append(out, found)
		}
	}
	return out
}

// refuses tells whether a condition says that an object belongs to somebody else. The controller writes "object NAMESPACE/NAME kind:KIND: …".
func refuses(message string, o object) bool {
	for _, namespace := range []string{o.Namespace, ""} {
		key := client.ObjectKey{Namespace: namespace, Name: o.Name}
		if strings.Contains(message, fmt.Sprintf("object %s kind:%s:", key, o.Kind)) {
			return true
		}
	}
	return false
}

// ownerOf says for people whose an object is.
func ownerOf(m *metav1.PartialObjectMetadata) string {
	if owner := metav1.GetControllerOf(m); owner != nil {
		if instance := m.Labels[packagesv1.InstanceLabel]; owner.Kind == "ObjectSet" && instance != "" {
			return why.Clean(fmt.Sprintf("Package %s, by its ObjectSet %s", instance, owner.Name))
		}
		return why.Clean(owner.Kind + " " + owner.Name)
	}
	if release := m.Annotations["meta.helm.sh/release-name"]; release != "" {
		return why.Clean(fmt.Sprintf("Helm release %s/%s", m.Annotations["meta.helm.sh/release-namespace"], release))
	}
	if app := m.Annotations["argocd.argoproj.io/tracking-id"]; app != "" {
		name, _, _ := strings.Cut(app, ":")
		return why.Clean("Argo CD application " + name)
	}
	if by := m.Labels["app.kubernetes.io/managed-by"]; by != "" {
		return why.Clean("nobody controls it; its label says that " + by + " manages it")
	}
	fields := slices.Clone(m.ManagedFields)
	slices.SortStableFunc(fields, func(a, b metav1.ManagedFieldsEntry) int {
		switch {
		case a.Time == nil || b.Time == nil:
			return 0
		default:
			return cmp.Compare(a.Time.Unix(), b.Time.Unix())
		}
	})
	if len(fields) > 0 && fields[0].Manager != "" {
		return why.Clean("nobody controls it; " + fields[0].Manager + " wrote it")
	}
	return "nobody controls it"
}
