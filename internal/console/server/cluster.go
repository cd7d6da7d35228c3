package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/redact"
	"hcp.internal/platform/internal/why"
	"hcp.internal/platform/internal/why/observe"
)

// maxMachines bounds what is shown of each list of a page.
const maxMachines = 500

// clusterPage is a hosted cluster's story.
type clusterPage struct {
	Cluster      *world.Cluster   `json:"cluster"`
	ControlPlane string           `json:"controlPlane"` // namespace
	Release      string           `json:"release"`
	Why          why.Answer       `json:"why"`
	Command      string           `json:"command"`
	Graph        graph            `json:"graph"`
	Conditions   []condition      `json:"conditions"`
	Timeline     timeline         `json:"timeline"`
	Stages       []stage          `json:"stages"`
	Versions     []versionEntry   `json:"versions"`
	Endpoints    []endpoint       `json:"endpoints"`
	Pools        []poolEntry      `json:"pools"`
	Packages     []*world.Package `json:"packages"`
	Warnings     []event          `json:"warnings"`
	Commands     []Command        `json:"commands"`
	Notes        []string         `json:"notes,omitempty"` // what could not be read
}

// condition is one for people.
type condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	// Good tells whether nobody needs to look; Counts whether a good or bad is known of it at all.
	Good   bool `json:"good"`
	Counts bool `json:"counts"`
}

// timeline is what the journal says.
type timeline struct {
	Entries []entry `json:"entries"`
	// First is the index of the transition with which the present trouble began; -1: nothing is wrong, or it is not known.
	First int    `json:"first"`
	Note  string `json:"note,omitempty"` // why there is less than there could be
}

// entry is a transition. Good is of the status after it.
type entry struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type"`
	From    string    `json:"from,omitempty"`
	To      string    `json:"to,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Good    bool      `json:"good"`
	Counts  bool      `json:"counts"`
}

// stage is one of those by which a control plane comes up.
type stage struct {
	Name string     `json:"name"`
	At   *time.Time `json:"at,omitempty"` // empty: not there yet
	Took float64    `json:"took"`         // seconds since the hosted cluster was made
}

type versionEntry struct {
	Version   string     `json:"version"`
	State     string     `json:"state"`
	Started   time.Time  `json:"started"`
	Completed *time.Time `json:"completed,omitempty"`
	Image     string     `json:"image"`
}

type endpoint struct {
	Name string `json:"name"`
	Host string `json:"host"`
}

func (s *Server) observer(c client.Reader) observe.Observer {
	// Hosted stays empty: kubeconfigs are Secrets, which the console does not read.
	return observe.Observer{Client: c, OperatorNamespace: s.OperatorNamespace, PackageOperatorNamespace: s.PackageOperatorNamespace, Now: s.Clock.Now}
}

func (s *Server) cluster(r *request) (any, error) {
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	of := why.Object{Kind: "HostedCluster", Namespace: r.PathValue("ns"), Name: r.PathValue("name")}
	snap, err := s.observer(r.viewer.Client).Snapshot(ctx, of)
	if err != nil {
		return nil, err
	}
	hc := &snap.HostedClusters[0]
	key := world.Key{Namespace: hc.Namespace, Name: hc.Name}
	page := &clusterPage{Cluster: world.ClusterOf(hc, time.Now()), ControlPlane: key.ControlPlane(), Release: hc.Spec.Release.Image, Why: cleaned(why.Explain(snap, of)),
		Command: fmt.Sprintf("hypershift why hostedcluster/%s -n %s", hc.Name, hc.Namespace), Graph: graphOf(snap), Conditions: conditionsOf(hc.Status.Conditions), Stages: stagesOf(hc),
		Versions: versionsOf(hc), Endpoints: endpointsOf(hc), Packages: []*world.Package{}, Warnings: warningsOf(snap), Commands: Commands(hc.Namespace, hc.Name)}
	page.Timeline = s.timeline(ctx, r.viewer.Client, "hostedcluster", hc, hc.Status.Conditions)
	page.Pools = poolsOf(snap)
	for _, p := range page.Pools {
		page.Cluster.Ready, page.Cluster.Wanted, page.Cluster.Pools = page.Cluster.Ready+p.Ready, page.Cluster.Wanted+p.Wanted, page.Cluster.Pools+1
	}
	for _, kind := range slices.Sorted(maps.Keys(snap.Unread)) {
		page.Notes = append(page.Notes, kind+": "+clip.Line(snap.Unread[kind]))
	}
	var list packagesv1.PackageList
	if err := r.viewer.Client.List(ctx, &list, client.InNamespace(page.ControlPlane), client.Limit(maxMachines)); err != nil {
		page.Notes = append(page.Notes, "Package: "+clip.Line(err.Error()))
	}
	for i := range list.Items {
		page.Packages = append(page.Packages, world.PackageOf(&list.Items[i], time.Now()))
	}
	return page, nil
}

// cleaned is an answer whose texts fit on a page: those of a rule are, those of others may not be.
func cleaned(a why.Answer) why.Answer {
	a.Cause = clip.Line(a.Cause)
	for i := range a.Chain {
		a.Chain[i].Text = clip.Line(a.Chain[i].Text)
	}
	for i := range a.Notes {
		a.Notes[i] = clip.Line(a.Notes[i])
	}
	return a
}

// conditionsOf puts what is bad first, then by name.
func conditionsOf(list []metav1.Condition) []condition {
	out := make([]condition, 0, len(list))
	for _, c := range list {
		good, counts := why.Good(c.Type, c.Status)
		out = append(out, condition{Type: clip.Line(c.Type), Status: string(c.Status), Reason: clip.Line(c.Reason), Message: why.Clean(c.Message), Since: c.LastTransitionTime.UTC(), Good: good, Counts: counts})
	}
	bad := func(c condition) int {
		switch {
		case c.Counts && !c.Good:
			return 0
		case c.Counts:
			return 1
		}
		return 2
	}
	slices.SortFunc(out, func(a, b condition) int { return cmp.Or(bad(a)-bad(b), strings.Compare(a.Type, b.Type)) })
	return out
}

// timeline reads the journal of an object, and makes do with its conditions when there is none.
func (s *Server) timeline(ctx context.Context, c client.Reader, kind string, obj client.Object, now []metav1.Condition) timeline {
	namespace := cmp.Or(obj.GetNamespace(), s.PackageOperatorNamespace, "package-operator-system")
	list, err := journal.Read(ctx, c, kind, namespace, obj.GetName())
	out := timeline{Entries: []entry{}, First: -1}
	switch {
	case err != nil:
		out.Note = "The journal could not be read, so only the last change of each condition is shown. " + clip.Line(err.Error())
	case len(list) == 0:
		out.Note = "There is no journal yet, so only the last change of each condition is shown."
	}
	if len(list) == 0 {
		for _, c := range now {
			list = append(list, journal.Entry{At: c.LastTransitionTime.UTC(), Type: c.Type, To: c.Status, Reason: c.Reason, Message: c.Message})
		}
		slices.SortStableFunc(list, func(a, b journal.Entry) int { return a.At.Compare(b.At) })
	}
	first := journal.FirstFailure(list, why.Good)
	for i := range list {
		e := &list[i]
		good, counts := why.Good(e.Type, e.To)
		if first != nil && out.First < 0 && e.At.Equal(first.At) && e.Type == first.Type {
			out.First = i
		}
		out.Entries = append(out.Entries, entry{At: e.At, Type: clip.Line(e.Type), From: string(e.From), To: string(e.To), Reason: clip.Line(e.Reason), Message: why.Clean(e.Message), Good: good, Counts: counts})
	}
	return out
}

// stagesOf says when a control plane passed each stage on its way up. A stage that was lost and came back tells when it came back, so the page speaks of
// the way up only while that was the only way.
func stagesOf(hc *hyperv1.HostedCluster) []stage {
	out := []stage{}
	for _, name := range why.Stages {
		st := stage{Name: name}
		for _, c := range hc.Status.Conditions {
			if c.Type == name && c.Status == metav1.ConditionTrue {
				at := c.LastTransitionTime.UTC()
				st.At, st.Took = &at, at.Sub(hc.CreationTimestamp.Time).Seconds()
			}
		}
		out = append(out, st)
	}
	return out
}

func versionsOf(hc *hyperv1.HostedCluster) []versionEntry {
	out := []versionEntry{}
	if hc.Status.Version == nil {
		return out
	}
	for _, v := range hc.Status.Version.History[:min(len(hc.Status.Version.History), 10)] {
		e := versionEntry{Version: clip.Line(v.Version), State: string(v.State), Started: v.StartedTime.UTC(), Image: clip.Line(v.Image)}
		if v.CompletionTime != nil {
			at := v.CompletionTime.UTC()
			e.Completed = &at
		}
		out = append(out, e)
	}
	return out
}

func endpointsOf(hc *hyperv1.HostedCluster) []endpoint {
	out := []endpoint{}
	if e := hc.Status.ControlPlaneEndpoint; e.Host != "" {
		out = append(out, endpoint{"API server", fmt.Sprintf("%s:%d", e.Host, e.Port)})
	}
	if e := hc.Status.IgnitionEndpoint; e != "" {
		out = append(out, endpoint{"Ignition", e})
	}
	if e := hc.Status.OAuthCallbackURLTemplate; e != "" {
		out = append(out, endpoint{"OAuth callback", e})
	}
	return out
}

// yaml is a HostedCluster as YAML, redacted as in a dump.
func (s *Server) yaml(r *request) (any, error) {
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedCluster"))
	if err := r.viewer.Client.Get(ctx, client.ObjectKey{Namespace: r.PathValue("ns"), Name: r.PathValue("name")}, u); err != nil {
		return nil, err
	}
	redact.Object(u)
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return nil, problem{http.StatusInternalServerError, "the object can't be written as YAML"}
	}
	return map[string]string{"yaml": plain(string(raw))}, nil
}

// plain is a text without what could turn the direction of writing. Lines stay.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, text)
}
