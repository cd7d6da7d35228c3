package oadp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/exit"
)

// maxList bounds a broken server; nobody has that many.
const maxList = 500

// plugin is the part of Velero that knows hosted clusters.
const plugin = "hypershift"

// hostedCluster reads what has to be known of the hosted cluster.
func (o *Common) hostedCluster(ctx context.Context, c client.Client) (cluster, error) {
	hc := &hyperv1.HostedCluster{}
	key := client.ObjectKey{Namespace: o.ClusterNamespace, Name: o.ClusterName}
	if err := c.Get(ctx, key, hc); apierrors.IsNotFound(err) {
		return cluster{}, exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s is not found: check --hc-name and --hc-namespace", key))
	} else if err != nil {
		return cluster{}, fmt.Errorf("reading HostedCluster %s: %w", key, err)
	}
	return cluster{platform: hc.Spec.Platform.Type, private: hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true"}, nil
}

// installed says whether OADP runs and takes backups. note is what is doubtful, for people.
func (o *Common) installed(ctx context.Context, c client.Client) (note string, err error) {
	for _, name := range []string{"openshift-adp-controller-manager", "velero"} {
		d := &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: o.Namespace, Name: name}
		if err := c.Get(ctx, key, d); apierrors.IsNotFound(err) {
			return "", fmt.Errorf("OADP is not installed: Deployment %s is not found; install the OADP operator, or name its namespace with --oadp-namespace", key)
		} else if err != nil {
			return "", fmt.Errorf("reading Deployment %s: %w", key, err)
		}
		if d.Status.ReadyReplicas == 0 {
			return "", fmt.Errorf("OADP is not ready: Deployment %s has no ready replica; see kubectl describe deployment -n %s %s", key, o.Namespace, name)
		}
	}
	apps := &unstructured.UnstructuredList{}
	apps.SetGroupVersionKind(schema.GroupVersionKind{Group: "oadp.openshift.io", Version: "v1alpha1", Kind: "DataProtectionApplicationList"})
	if err := c.List(ctx, apps, client.InNamespace(o.Namespace), client.Limit(maxList)); meta.IsNoMatchError(err) {
		return "", errors.New("OADP is not installed: the API server does not know DataProtectionApplications (oadp.openshift.io/v1alpha1)")
	} else if err != nil {
		return "", fmt.Errorf("listing DataProtectionApplications in namespace %s: %w", o.Namespace, err)
	}
	reconciled, plugged := false, false
	for i := range apps.Items {
		plugins, _, _ := unstructured.NestedStringSlice(apps.Items[i].Object, "spec", "configuration", "velero", "defaultPlugins")
		plugged = plugged || slices.Contains(plugins, plugin)
		conditions, _, _ := unstructured.NestedSlice(apps.Items[i].Object, "status", "conditions")
		for _, entry := range conditions {
			cond, _ := entry.(map[string]any)
			reconciled = reconciled || cond["type"] == "Reconciled" && cond["status"] == "True"
		}
	}
	if !reconciled {
		return "", fmt.Errorf("no DataProtectionApplication in namespace %s has condition Reconciled=True: OADP has no storage to use yet; see kubectl get dataprotectionapplication -n %s -o yaml",
			o.Namespace, o.Namespace)
	}
	if !plugged {
		note = fmt.Sprintf("no DataProtectionApplication in namespace %s lists the plugin %s in spec.configuration.velero.defaultPlugins: hosted clusters may not come back whole", o.Namespace, plugin)
	}
	return note, nil
}

// source says whether there is something to restore from.
func (o *RestoreOptions) source(ctx context.Context, c client.Client) error {
	kind, name, flag := "Backup", o.FromBackup, "--from-backup"
	if o.FromSchedule != "" {
		kind, name, flag = "Schedule", o.FromSchedule, "--from-schedule"
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(veleroAPI, kind))
	key := client.ObjectKey{Namespace: o.Namespace, Name: name}
	switch err := c.Get(ctx, key, u); {
	case apierrors.IsNotFound(err):
		return exit.With(exit.NotFound, fmt.Errorf("%s %s is not found: check %s and --oadp-namespace", kind, key, flag))
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the API server does not know %ss of velero.io/v1: install OADP first", kind)
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); kind == "Backup" && phase != "" && phase != "Completed" {
		return fmt.Errorf("Backup %s is in phase %s, not Completed: wait for it, or take another", key, phase)
	}
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused {
		return fmt.Errorf("Schedule %s is paused: set spec.paused to false, or name one of its backups with --from-backup", key)
	}
	return nil
}

// refuseTyped refuses flags that say something of volumes when etcd writes the snapshot itself.
func refuseTyped(changed func(string) bool, flags ...string) error {
	for _, f := range flags {
		if changed(f) {
			return fmt.Errorf("--%s cannot be used with --use-etcd-snapshot (etcd snapshot mode disables volume snapshots)", f)
		}
	}
	return nil
}

// describe names an object in messages.
func describe(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GetKind(), u.GetNamespace() + "/" + u.GetName()}, " ")
}
