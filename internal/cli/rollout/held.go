package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/rollout"
)

// holdAfter is how long nothing may change in a rollout before it counts as held: as long as a Deployment may take for its progress.
const holdAfter = 10 * time.Minute

// watcher follows a rollout and says when it doesn't go on by itself.
type watcher struct {
	// patience is how long nothing may change; 0: for ever.
	patience time.Duration

	seen      string
	changedAt time.Time
}

// look takes one state of a rollout, with the Packages that are in flight, at a time. held says why it doesn't go on before somebody acts;
// empty while it may.
func (w *watcher) look(p *packagesv1.HostedClusterPackage, inFlight []packagesv1.Package, now time.Time) (held string) {
	if seen := fingerprint(p, inFlight); seen != w.seen {
		w.seen, w.changedAt = seen, now
	}
	options, _ := rollout.ParseOptions(p.Annotations) // what is wrong in them is for the controller to tell
	switch {
	case options.Paused:
		return "it is paused; `hypershift rollout resume hostedclusterpackage/" + p.Name + "` resumes it"
	case int64(p.Status.ObservedGeneration) < p.Generation:
		// The controller has to say something about the newest template first.
	case len(inFlight) > 0 && !slices.ContainsFunc(inFlight, func(p packagesv1.Package) bool { return !invalid(&p) }):
		return fmt.Sprintf("%s can't be installed: %s", names(inFlight), why(&inFlight[0]))
	}
	// A group that soaks changes nothing for as long as it was told to, and a failure is judged when its deadline is over.
	wait := w.patience + options.Soak + options.Deadline
	if w.patience > 0 && now.Sub(w.changedAt) >= wait {
		_, text := describe(p)
		return fmt.Sprintf("nothing has changed for %s: %s", now.Sub(w.changedAt).Round(time.Second), text)
	}
	return ""
}

// fingerprint is what changes while a rollout goes on. Reasons of conditions are left out: a pod that crashes again and again changes them.
func fingerprint(p *packagesv1.HostedClusterPackage, inFlight []packagesv1.Package) string {
	s := p.Status
	var b strings.Builder
	fmt.Fprint(&b, p.UID, p.Generation, s.ObservedGeneration, s.UpdatedPackages, s.AvailablePackages, s.ProgressedPackages, s.TotalPackages, s.Processing, s.Partitions)
	for i := range inFlight {
		fmt.Fprint(&b, inFlight[i].UID, inFlight[i].Generation, inFlight[i].Status.Revision)
	}
	return b.String()
}

// invalid says that a Package was judged as it is now, and can't be installed before somebody changes it.
func invalid(p *packagesv1.Package) bool {
	c := conditions.Current(p.Status.Conditions, packagesv1.ConditionInvalid, p.Generation)
	return c != nil && c.Status == "True"
}

func names(packages []packagesv1.Package) string {
	var out []string
	for i := range packages {
		out = append(out, packages[i].Namespace+"/"+packages[i].Name)
	}
	return strings.Join(out, ", ")
}

// packagesInFlight reads the Packages that are being changed, at most shownFlights of them. Those that can't be read are left out.
func packagesInFlight(ctx context.Context, c client.Reader, owner *packagesv1.HostedClusterPackage) []packagesv1.Package {
	var out []packagesv1.Package
	for _, ref := range owner.Status.Processing[:min(len(owner.Status.Processing), shownFlights)] {
		p := packagesv1.Package{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &p); err == nil {
			out = append(out, p)
		}
	}
	return out
}
