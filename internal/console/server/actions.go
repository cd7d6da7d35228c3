package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/access"
	kubepatch "hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	"hcp.internal/platform/internal/packages/control/rollout"
)

// fieldOwner writes what people change in the console.
const fieldOwner = client.FieldOwner("hypershift-console")

const (
	pause  = "pause"
	resume = "resume"
	// maxNamed bounds the hosted clusters that a sentence names.
	maxNamed = 5
)

// action is what somebody asks to be done with a rollout.
type action struct {
	// Action is pause or resume.
	Action string `json:"action"`
	// UID of the rollout that they looked at, so that another one of the same name is left alone; empty: whichever there is.
	UID types.UID `json:"uid,omitempty"`
	// DryRun has the API server judge it, and tells what would come of it.
	DryRun bool `json:"dryRun,omitempty"`
}

// outcome is what came of an action, or what would.
type outcome struct {
	Action string    `json:"action"`
	UID    types.UID `json:"uid"`
	DryRun bool      `json:"dryRun,omitempty"`
	// Already tells that it is so already: nothing is written.
	Already bool `json:"already,omitempty"`
	// Field is what is written: From becomes To. Empty: it is not set.
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	// Effects are sentences.
	Effects []string `json:"effects"`
	// Command does the same.
	Command string `json:"command"`
	Paused  bool   `json:"paused"`
}

// changeRollout pauses or resumes a rollout. Whether the person may is asked first, then the API server judges the change without making it, and only then it
// is made: all with their own token, so that they can do nothing here that they could not do elsewhere, and the audit log names them.
func (s *Server) changeRollout(r *request) (any, error) {
	var in action
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&in); err != nil {
		return nil, badRequest("the body must be {\"action\": \"pause\" or \"resume\", \"uid\": \"…\", \"dryRun\": true or false}")
	}
	if in.Action != pause && in.Action != resume {
		return nil, badRequest("action: must be pause or resume")
	}
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	log := s.Log.WithValues("user", r.viewer.Name, "action", in.Action, "rollout", r.PathValue("name"), "dryRun", in.DryRun)
	out, err := s.pauseOrResume(ctx, r.viewer, r.PathValue("name"), in)
	if err != nil {
		_, why := explain(err)
		log.Info("action refused", "reason", why)
		return nil, err
	}
	log.Info("action done", "already", out.Already)
	return out, nil
}

func (s *Server) pauseOrResume(ctx context.Context, viewer *access.Viewer, name string, in action) (*outcome, error) {
	if err := viewer.MayChange(ctx, "patch", rollouts, "", name); err != nil {
		return nil, err
	}
	var out *outcome
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // its status is written all the time
		owner := &packagesv1.HostedClusterPackage{}
		if err := viewer.Client.Get(ctx, client.ObjectKey{Name: name}, owner); err != nil {
			return err
		}
		if in.UID != "" && in.UID != owner.UID {
			return problem{http.StatusConflict, "this rollout was deleted, and another one has its name: look at it again"}
		}
		out = outcomeOf(owner, in)
		if !out.Already {
			change := kubepatch.Metadata{ResourceVersion: owner.ResourceVersion, Annotations: map[string]*string{packagesv1.RolloutPausedAnnotation: nil}}
			if in.Action == pause {
				change.Annotations[packagesv1.RolloutPausedAnnotation] = ptr.To(out.To)
			}
			if err := viewer.Writer.Patch(ctx, owner.DeepCopy(), change.Patch(), fieldOwner, client.DryRunAll); err != nil {
				return err
			}
			if !in.DryRun {
				return viewer.Writer.Patch(ctx, owner, change.Patch(), fieldOwner)
			}
		}
		out.Effects = s.effects(ctx, viewer, owner, in.Action)
		return nil
	})
	return out, err
}

// outcomeOf is what an action would write to a rollout.
func outcomeOf(owner *packagesv1.HostedClusterPackage, in action) *outcome {
	options, _ := rollout.ParseOptions(owner.Annotations) // what is wrong in them is for the controller to tell
	out := &outcome{Action: in.Action, UID: owner.UID, DryRun: in.DryRun, Field: "metadata.annotations[" + packagesv1.RolloutPausedAnnotation + "]", From: clip.Line(owner.Annotations[packagesv1.RolloutPausedAnnotation]),
		Effects: []string{}, Command: "hypershift rollout " + in.Action + " hostedclusterpackage/" + owner.Name, Paused: in.Action == pause}
	if out.Paused {
		out.To = "true"
	}
	out.Already = options.Paused == out.Paused
	return out
}

// effects says what would come of an action, by the planner that the controller uses.
func (s *Server) effects(ctx context.Context, viewer *access.Viewer, owner *packagesv1.HostedClusterPackage, what string) []string {
	owner = owner.DeepCopy()
	if owner.Annotations == nil {
		owner.Annotations = map[string]string{}
	}
	delete(owner.Annotations, packagesv1.RolloutPausedAnnotation)
	in, err := hostedclusterpackage.Observe(ctx, viewer.Client, owner)
	if err != nil {
		return []string{"What would come of it can't be told: " + clip.Line(err.Error())}
	}
	now, assume := s.Clock.Now(), rollout.Assumptions{PerCluster: perCluster}
	going := rollout.Predict(in, assume, now)
	if what == resume {
		return effectsOfResume(going)
	}
	in.Settings.Options.Paused = true
	return effectsOfPause(going, rollout.Predict(in, assume, now))
}

// effectsOfPause compares what a rollout does with what it does when it is paused.
func effectsOfPause(going, paused rollout.Forecast) []string {
	out := []string{}
	if n := len(paused.Awaited); n > 0 {
		out = append(out, fmt.Sprintf("%s being changed, and %s on: %s.", clustersAre(n), verb(n, "goes", "go"), named(paused.Awaited)))
	}
	made := clustersOf(paused)
	if n := len(made); n > 0 {
		out = append(out, fmt.Sprintf("%s without the package, and %s it all the same: %s.", clustersAre(n), verb(n, "gets", "get"), named(made)))
	}
	later := slices.DeleteFunc(clustersOf(going), func(c types.NamespacedName) bool { return slices.Contains(made, c) })
	if n := len(later); n > 0 {
		out = append(out, fmt.Sprintf("%s not changed until someone resumes it: %s.", clustersAre(n), named(later)))
	} else {
		out = append(out, "No other hosted cluster waits to be changed.")
	}
	return append(out, "New hosted clusters still get theirs.")
}

// clustersOf are those that a forecast changes, in their order.
func clustersOf(f rollout.Forecast) []types.NamespacedName {
	seen, out := map[types.NamespacedName]bool{}, []types.NamespacedName{}
	for _, w := range f.Waves {
		for _, c := range w.Clusters {
			if !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
	}
	return out
}

func effectsOfResume(f rollout.Forecast) []string {
	if len(f.Waves) == 0 {
		return []string{"No hosted cluster waits to be changed."}
	}
	first, all := f.Waves[0], 0
	for _, w := range f.Waves {
		all += len(w.Clusters)
	}
	when := "at once"
	if first.After > 0 {
		when = "in " + first.After.Round(time.Second).String() + ", when what is being changed is done"
	}
	out := []string{fmt.Sprintf("%s changed %s: %s.", clustersAre(len(first.Clusters)), when, named(first.Clusters))}
	if rest := all - len(first.Clusters); rest > 0 {
		out = append(out, fmt.Sprintf("%d more follow, in %d more waves.", rest, len(f.Waves)-1))
	}
	if !f.Finished {
		return append(out, fmt.Sprintf("It stops before all are done: %d are left.", len(f.Rest)))
	}
	return append(out, fmt.Sprintf("It takes about %s if each takes %s.", f.Duration.Round(time.Second), perCluster))
}

func clustersAre(n int) string {
	if n == 1 {
		return "1 hosted cluster is"
	}
	return fmt.Sprintf("%d hosted clusters are", n)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func named(list []types.NamespacedName) string {
	var out []string
	for _, c := range list[:min(len(list), maxNamed)] {
		out = append(out, c.String())
	}
	if more := len(list) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}
