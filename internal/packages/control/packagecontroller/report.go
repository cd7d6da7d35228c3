package packagecontroller

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
)

// copied are conditions of the ObjectDeployment that a Package has, too, besides mapped ones.
var copied = []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionPaused}

// fromDeployment copies what an ObjectDeployment reports about its present generation. It returns the conditions to set and the types to remove.
func fromDeployment(od *v1alpha1.ObjectDeployment, have []metav1.Condition) (set []metav1.Condition, remove []string) {
	current := map[string]bool{}
	if od != nil {
		for _, c := range od.Status.Conditions {
			if c.ObservedGeneration != od.Generation {
				continue
			}
			wanted := strings.Contains(c.Type, "/")
			for _, name := range copied {
				wanted = wanted || c.Type == name
			}
			if c.Type == v1alpha1.ConditionPaused && c.Status != metav1.ConditionTrue {
				wanted = false
			}
			if wanted {
				current[c.Type] = true
				set = append(set, conditions.New(c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	for _, c := range have {
		if !current[c.Type] && (strings.Contains(c.Type, "/") || c.Type == v1alpha1.ConditionPaused) {
			remove = append(remove, c.Type)
		}
	}
	return set, remove
}

// said is what a Package says of its deployment, nil when there is none. It returns the conditions to set and the types to remove.
func said(p *v1alpha1.Package, od *v1alpha1.ObjectDeployment) (set []metav1.Condition, remove []string) {
	set, remove = fromDeployment(od, p.Status.Conditions)
	switch {
	case p.Spec.Paused && od == nil:
		return append(set, conditions.True(v1alpha1.ConditionPaused, v1alpha1.ReasonPaused, "Nothing is installed while spec.paused is true.")), nil
	case p.Spec.Paused: // nothing is unpacked, whatever spec says
	case od == nil && p.Status.UnpackedHash != "": // somebody deleted it
		set = append(set, begun(newRevision))
	case od != nil && !isUnpacked(p):
		set = notUnpacked(set)
	}
	return set, remove
}

// isUnpacked tells that what a Package's spec says now was unpacked.
func isUnpacked(p *v1alpha1.Package) bool {
	c := conditions.Current(p.Status.Conditions, v1alpha1.ConditionUnpacked, p.Generation)
	return c != nil && c.Status == metav1.ConditionTrue
}

// notUnpacked is what a deployment says of which nothing is what the Package's spec says now. That its update is concluded is about what was asked for
// before: a rollout that took it for the new revision would go on to the next cluster.
func notUnpacked(set []metav1.Condition) []metav1.Condition {
	set = slices.DeleteFunc(set, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionProgressing })
	return append(set, conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonProgressing, "What spec asks for is not unpacked yet. What is installed stays."))
}

// What a Package says of a revision of which its deployment has not said anything yet.
const (
	newRevision = "Progressing to a new ObjectSet." // as the deployment is about to say
	rerendered  = "Rendered for another environment."
	relabelled  = "Rendered for other labels or annotations."
)

func begun(message string) metav1.Condition {
	return conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonProgressing, message)
}

// maxMessage is what a condition has room for.
const maxMessage = 32768

func bounded(message string) string {
	if len(message) > maxMessage {
		return clip.To(message, maxMessage-3) + "…"
	}
	return message
}

// afterFailure are the conditions of a package that can't be installed. One that was wrong and can't be pulled now is still wrong.
func afterFailure(f *failure) []metav1.Condition {
	message := bounded(f.err.Error())
	if f.condition == v1alpha1.ConditionUnpacked {
		return []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionFalse, Reason: f.reason, Message: message}}
	}
	return []metav1.Condition{
		// Whoever waits for a change of the spec to arrive must not believe that it has.
		{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionFalse, Reason: f.reason, Message: message},
		{Type: v1alpha1.ConditionInvalid, Status: metav1.ConditionTrue, Reason: f.reason, Message: message},
	}
}

// unpacked are the conditions of a package that was installed; Invalid goes.
func unpacked(have []metav1.Condition, again bool) []metav1.Condition {
	if again {
		if c := conditions.Get(have, v1alpha1.ConditionUnpacked); c != nil && c.Status == metav1.ConditionTrue {
			return []metav1.Condition{{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}}
		}
		return []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAlreadyUnpacked, Message: "Package already unpacked"}}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnpackSuccess, Message: "Unpack job succeeded"}}
}

// stampPaused says about a paused Package's present generation that it is unpacked, when what is installed is what its spec says and merely the pause
// was set. Who waits for the Package would wait for ever else, for nothing is unpacked until it is unpaused.
func (r *Reconciler) stampPaused(p *v1alpha1.Package) error {
	hash, err := r.specHash(p.Spec)
	if err != nil {
		return err
	}
	if parseOrigin(p.Status.UnpackedHash).spec == hash && conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionUnpacked) {
		r.set(p, unpacked(p.Status.Conditions, true)...)
	}
	return nil
}

// stillSo is what was said when a package could not be installed. It holds for a later generation, too, in which the same is asked for.
func stillSo(list []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, kind := range []string{v1alpha1.ConditionInvalid, v1alpha1.ConditionUnpacked} {
		if c := conditions.Get(list, kind); c != nil {
			out = append(out, *c)
		}
	}
	return out
}

func (r *Reconciler) set(p *v1alpha1.Package, list ...metav1.Condition) {
	for i := range list {
		list[i].ObservedGeneration = p.Generation
	}
	conditions.Set(&p.Status.Conditions, r.Clock.Now(), list...)
}

func (r *Reconciler) succeeded(p *v1alpha1.Package, got *result, from origin, od *v1alpha1.ObjectDeployment, started time.Time) {
	if !got.environment {
		from.environment = ""
	}
	if !got.metadata {
		from.metadata = ""
	}
	p.Status.UnpackedHash = from.String()
	conditions.Remove(&p.Status.Conditions, v1alpha1.ConditionInvalid, v1alpha1.ConditionEnvironmentOutdated)
	r.set(p, unpacked(nil, false)...)
	r.Deployments.Wrote(od, od.ResourceVersion)
	r.attempts.forget(client.ObjectKeyFromObject(p))
	r.Metrics.PackageLoaded(client.ObjectKeyFromObject(p), r.Clock.Since(started).Seconds())
}
