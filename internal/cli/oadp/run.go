package oadp

import (
	"context"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
)

// renderTimeout bounds the checks of --render, which prints the object without them as well.
const renderTimeout = 15 * time.Second

// job is one object to make: what is looked at before, and what comes of it.
type job struct {
	common *Common
	// hosted is whether the HostedCluster has to exist.
	hosted bool
	// source looks for what a restore needs; nil: nothing.
	source func(context.Context, client.Client) error
	// build makes the object.
	build func(cluster) *unstructured.Unstructured
}

// unknown is a hosted cluster that can't be asked for.
var unknown = cluster{platform: hyperv1.AWSPlatform}

// run makes the object and says so on out, or prints it. Doubts go to notes.
func (j job) run(ctx context.Context, out, notes io.Writer) error {
	if j.common.Render {
		return j.render(ctx, out, notes)
	}
	c, err := j.common.Connect.Client()
	if err != nil {
		return err
	}
	of, note, err := j.look(ctx, c)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(notes, "Warning: "+note)
	}
	if of.platform == hyperv1.KubevirtPlatform && j.hosted {
		if err := j.createPolicy(ctx, c, out); err != nil {
			return err
		}
	}
	u := j.build(of)
	if err := c.Create(ctx, u); apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s exists already: take another --name, or leave the flag out to have one generated", describe(u))
	} else if err != nil {
		return fmt.Errorf("creating %s: %w", describe(u), err)
	}
	if dry := j.common.Connect.DryRun; dry != connect.NoDryRun {
		fmt.Fprintf(out, "%s created%s\n", describe(u), dry.Suffix())
		return nil
	}
	fmt.Fprintf(out, "%s created\n\nWatch it:\n  kubectl get %s.velero.io %s --namespace %s -o yaml\n", describe(u), plural(u), u.GetName(), u.GetNamespace())
	return nil
}

// look reads what has to be there, in the order in which a person would put it right.
func (j job) look(ctx context.Context, c client.Client) (of cluster, note string, err error) {
	of = unknown
	if j.hosted {
		if of, err = j.common.hostedCluster(ctx, c); err != nil {
			return cluster{}, "", err
		}
	}
	if j.source != nil {
		if err := j.source(ctx, c); err != nil {
			return cluster{}, "", err
		}
	}
	note, err = j.common.installed(ctx, c)
	return of, note, err
}

// render prints the object. Where a management cluster can be asked, what would stand in the way is a warning.
func (j job) render(ctx context.Context, out, notes io.Writer) error {
	of := unknown
	if c, err := j.common.Connect.Client(); err == nil {
		ctx, cancel := context.WithTimeout(ctx, renderTimeout)
		defer cancel()
		found, note, err := j.look(ctx, c)
		if err != nil {
			note = err.Error()
		} else {
			of = found
		}
		if note != "" {
			fmt.Fprintln(notes, "Warning: "+note)
		}
	}
	objects := []*unstructured.Unstructured{j.build(of)}
	if of.platform == hyperv1.KubevirtPlatform && j.hosted {
		policy, err := j.common.policy()
		if err != nil {
			return err
		}
		objects = append([]*unstructured.Unstructured{policy}, objects...)
	}
	for _, u := range objects {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("printing %s: %w", describe(u), err)
		}
		if _, err := fmt.Fprintf(out, "\n---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// createPolicy makes the rules for volumes; those that are there, perhaps changed by somebody, are left alone.
func (j job) createPolicy(ctx context.Context, c client.Client, out io.Writer) error {
	u, err := j.common.policy()
	if err != nil {
		return err
	}
	if err := c.Create(ctx, u); apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("creating %s: %w", describe(u), err)
	}
	fmt.Fprintf(out, "%s created%s\n", describe(u), j.common.Connect.DryRun.Suffix())
	return nil
}

func plural(u *unstructured.Unstructured) string {
	return map[string]string{"Backup": "backups", "Restore": "restores", "Schedule": "schedules"}[u.GetKind()]
}
