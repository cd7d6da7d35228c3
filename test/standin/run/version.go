package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/sleep"
)

const versionPath = "/apis/config.openshift.io/v1/clusterversions/version"

// clusterVersion is what the cluster-version-operator reads and writes of the ClusterVersion.
type clusterVersion struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		ClusterID    string `json:"clusterID"`
		Capabilities struct {
			Baseline   string   `json:"baselineCapabilitySet"`
			Additional []string `json:"additionalEnabledCapabilities"`
		} `json:"capabilities"`
	} `json:"spec"`
	Status versionStatus `json:"status"`
}

type versionStatus struct {
	Desired            release        `json:"desired"`
	History            []historyEntry `json:"history"`
	ObservedGeneration int64          `json:"observedGeneration"`
	VersionHash        string         `json:"versionHash"`
	Capabilities       struct {
		Enabled []string `json:"enabledCapabilities"`
		Known   []string `json:"knownCapabilities"`
	} `json:"capabilities"`
	Conditions       []condition `json:"conditions"`
	AvailableUpdates []release   `json:"availableUpdates"`
}

type release struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

type historyEntry struct {
	State          string  `json:"state"`
	Version        string  `json:"version"`
	Image          string  `json:"image"`
	StartedTime    string  `json:"startedTime"`
	CompletionTime *string `json:"completionTime"`
	Verified       bool    `json:"verified"`
}

// nextStatus is the status for a desired release; waitsFor is empty once everything of it is there.
func nextStatus(old versionStatus, desired release, waitsFor string, now string) versionStatus {
	next := old
	next.Desired, next.History = desired, slices.Clone(old.History)
	if len(next.History) == 0 || next.History[0].Image != desired.Image || next.History[0].Version != desired.Version {
		if len(next.History) > 0 && next.History[0].CompletionTime == nil {
			next.History[0].CompletionTime = &now
		}
		next.History = slices.Insert(next.History, 0, historyEntry{State: "Partial", Version: desired.Version, Image: desired.Image, StartedTime: now})
	}
	done := waitsFor == ""
	if done && next.History[0].State != "Completed" {
		next.History[0].State, next.History[0].CompletionTime = "Completed", &now
	}
	completed := slices.ContainsFunc(next.History, func(h historyEntry) bool { return h.State == "Completed" })
	progress, reason := "Cluster version is "+desired.Version, ""
	if !done {
		progress, reason = "Working towards "+desired.Version+": "+waitsFor, "ClusterOperatorsUpdating"
	}
	set := func(kind string, value bool, reason, message string) {
		c := condition{Type: kind, Status: "False", Reason: reason, Message: message, LastTransitionTime: now}
		if value {
			c.Status = "True"
		}
		for i, was := range next.Conditions {
			if was.Type != kind {
				continue
			}
			if was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
			next.Conditions[i] = c
			return
		}
		next.Conditions = append(next.Conditions, c)
	}
	next.Conditions = slices.Clone(old.Conditions)
	available := ""
	if completed {
		available = "Done applying " + desired.Version
	}
	set("Available", completed, "", available)
	set("Failing", false, "", "")
	set("Progressing", !done, reason, progress)
	set("ReleaseAccepted", true, "PayloadLoaded", "Payload loaded version="+desired.Version)
	set("RetrievedUpdates", false, "NoChannel", "The update channel has not been configured.")
	set("Upgradeable", true, "AsExpected", "")
	return next
}

// payload is what the operator was given of a release.
func (r *runner) payload() (desired release, manifests []manifest, err error) {
	folder := r.path(os.Getenv("PAYLOAD_OVERRIDE"))
	raw, err := os.ReadFile(filepath.Join(folder, "release-manifests", "image-references"))
	if err != nil {
		return desired, nil, fmt.Errorf("the payload has no image-references: %w; prepare-payload copies them", err)
	}
	var stream struct {
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(raw, &stream); err != nil || stream.Metadata.Name == "" {
		return desired, nil, errors.New("the payload's image-references name no version")
	}
	manifests, err = readManifests(filepath.Join(folder, "manifests"), filepath.Join(folder, "release-manifests"))
	return release{stream.Metadata.Name, r.values.Get("release-image")}, manifests, err
}

// versionOperator applies the payload and keeps ClusterVersion up to date.
func (r *runner) versionOperator(ctx context.Context) error {
	desired, manifests, err := r.payload()
	if err != nil {
		return err
	}
	if !strings.Contains(desired.Image, "@sha256:") {
		return fmt.Errorf("flag --release-image is %q; name the release by digest", desired.Image)
	}
	seen := int64(-1)
	for {
		var waits string
		err := r.until(ctx, func() (err error) {
			waits, err = r.versionRound(ctx, desired, manifests, &seen)
			return err
		})
		if err != nil {
			return nil //nolint:nilerr // only the end of ctx ends it
		}
		pause := resync
		if waits != "" {
			pause = retry
		}
		if sleep.For(ctx, pause) != nil {
			return nil //nolint:nilerr // because only the end of ctx ends it
		}
	}
}

// versionRound is one look at the cluster. Manifests are applied when the ClusterVersion changed; seen is its last generation.
func (r *runner) versionRound(ctx context.Context, desired release, manifests []manifest, seen *int64) (string, error) {
	client, err := kubeapi.FromKubeconfig(r.target())
	if err != nil {
		return "", err
	}
	defer client.Close()
	cv := clusterVersion{}
	if err := client.Get(ctx, versionPath, &cv); err != nil {
		return "", fmt.Errorf("reading ClusterVersion: %w", err)
	}
	p := planManifests(manifests, os.Getenv("CLUSTER_PROFILE"), cv.Spec.Capabilities.Additional)
	write := func(waits string) error {
		next := nextStatus(cv.Status, desired, waits, time.Now().UTC().Format(time.RFC3339))
		next.ObservedGeneration, next.VersionHash = cv.Metadata.Generation, "standin"
		next.Capabilities.Enabled, next.Capabilities.Known = cv.Spec.Capabilities.Additional, p.known
		before, err1 := json.Marshal(cv.Status)
		after, err2 := json.Marshal(next)
		if err1 == nil && err2 == nil && string(before) == string(after) {
			return nil
		}
		cv.Status = next
		return apply(ctx, client, versionPath+"/status", object{
			"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": object{"name": "version"}, "status": next,
		})
	}
	if *seen != cv.Metadata.Generation {
		h := cv.Status.History
		if len(h) == 0 || h[0].State != "Completed" || h[0].Image != desired.Image {
			if err := write("applying manifests"); err != nil {
				return "", fmt.Errorf("writing ClusterVersion's status: %w", err)
			}
		}
		if err := r.applyManifests(ctx, client, p); err != nil {
			return "", err
		}
		*seen = cv.Metadata.Generation
	}
	waits, err := waitsFor(ctx, client, operators(p.apply), desired.Version)
	if err != nil {
		return "", err
	}
	return waits, write(waits)
}

// applyManifests brings the cluster to what the payload wants. Later kinds may need earlier definitions to be served, so it is repeated.
func (r *runner) applyManifests(ctx context.Context, client *kubeapi.Client, p plan) error {
	for _, m := range p.apply {
		path, err := client.ObjectPath(ctx, m.string("apiVersion"), m.string("kind"), m.string("metadata", "namespace"), m.string("metadata", "name"))
		if err != nil {
			return fmt.Errorf("applying %s: %w", m, err)
		}
		if err := apply(ctx, client, path, m.object); err != nil {
			return fmt.Errorf("applying %s: %w", m, err)
		}
	}
	for _, m := range p.remove {
		path, err := client.ObjectPath(ctx, m.string("apiVersion"), m.string("kind"), m.string("metadata", "namespace"), m.string("metadata", "name"))
		if kubeapi.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = client.Delete(ctx, path)
		}
		if err != nil && !kubeapi.IsNotFound(err) {
			return fmt.Errorf("deleting %s: %w", m, err)
		}
	}
	return nil
}

// waitsFor names the ClusterOperators that aren't at the version.
func waitsFor(ctx context.Context, client *kubeapi.Client, names []string, version string) (string, error) {
	var late []string
	for _, name := range names {
		o := clusterOperator{}
		if err := client.Get(ctx, operatorsPath+name, &o); err != nil && !kubeapi.IsNotFound(err) {
			return "", err
		}
		if !o.Status.available(version) {
			late = append(late, name)
		}
	}
	if len(late) == 0 {
		return "", nil
	}
	return "waiting on " + strings.Join(late, ", "), nil
}
