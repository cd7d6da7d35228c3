package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/sleep"
)

// fieldOwner owns what the stand-in applies.
const fieldOwner = "standin"

// target is the kubeconfig of the hosted cluster; empty for the cluster that the environment names.
func (r *runner) target() string {
	if len(r.kubeconfigs) > 0 {
		return r.kubeconfigs[0]
	}
	return ""
}

// version is the one that an operator reports.
func (r *runner) version() string {
	for _, name := range []string{"RELEASE_VERSION", "OPERATOR_IMAGE_VERSION"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// clusterOperator is the part of a ClusterOperator that is reported.
type clusterOperator struct {
	Status operatorStatus `json:"status"`
}

type operatorStatus struct {
	Conditions []condition       `json:"conditions,omitempty"`
	Versions   []operatorVersion `json:"versions,omitempty"`
}

type operatorVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

// available says whether an operator reports a version.
func (s operatorStatus) available(version string) bool {
	ok := false
	for _, v := range s.Versions {
		ok = ok || (v.Name == "operator" && v.Version == version)
	}
	for _, c := range s.Conditions {
		if c.Type == "Available" {
			return ok && c.Status == "True"
		}
	}
	return false
}

const operatorsPath = "/apis/config.openshift.io/v1/clusteroperators/"

// reportOperator keeps the program's ClusterOperator as it should be, and writes only when it isn't.
func (r *runner) reportOperator(ctx context.Context) error {
	for {
		err := r.until(ctx, func() error { return r.reportOnce(ctx) })
		if err != nil || sleep.For(ctx, resync) != nil {
			return nil //nolint:nilerr // only the end of ctx ends it
		}
	}
}

func (r *runner) reportOnce(ctx context.Context) error {
	client, err := kubeapi.FromKubeconfig(r.target())
	if err != nil {
		return err
	}
	defer client.Close()
	path := operatorsPath + r.Operator
	got := clusterOperator{}
	err = client.Get(ctx, path, &got)
	if err != nil && !kubeapi.IsNotFound(err) {
		return err
	}
	if err == nil && got.Status.available(r.version()) {
		return nil
	}
	head := object{"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": object{"name": r.Operator}}
	if kubeapi.IsNotFound(err) {
		if err := apply(ctx, client, path, head); err != nil {
			return err
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	head["status"] = operatorStatus{
		Versions: []operatorVersion{{"operator", r.version()}},
		Conditions: []condition{
			{"Available", "True", "AsExpected", "", now}, {"Degraded", "False", "AsExpected", "", now},
			{"Progressing", "False", "AsExpected", "", now}, {"Upgradeable", "True", "AsExpected", "", now},
		},
	}
	return apply(ctx, client, path+"/status", head)
}

func apply(ctx context.Context, client *kubeapi.Client, path string, o object) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return client.Apply(ctx, path, fieldOwner, raw)
}
