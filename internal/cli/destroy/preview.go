package destroy

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/conditions"
)

// preview prints what the destruction of a cluster would delete, and changes nothing. hc is nil when only o.InfraID tells of it.
func preview(ctx context.Context, o Options, c client.Client, hc *hyperv1.HostedCluster, out io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	if hc != nil {
		line("HostedCluster %s", describe(hc))
		if err := previewPools(ctx, c, hc, line); err != nil {
			return err
		}
		if err := previewPlane(ctx, c, hc, line); err != nil {
			return err
		}
	}
	if o.InfraID != "" {
		secrets, err := madeSecrets(ctx, c, o.Namespace, o.InfraID)
		if err != nil {
			return err
		}
		for i := range secrets.Items {
			line("Secret %s/%s, which `create cluster` made", secrets.Items[i].Namespace, secrets.Items[i].Name)
		}
	}
	switch cloud := hc != nil && hc.Spec.Platform.Type != hyperv1.NonePlatform && hc.Spec.Platform.Type != hyperv1.LocalPlatform; {
	case hc == nil:
	case ofKubernetes(hc):
		if cloud {
			b.WriteString("Would stay: load balancers and volumes that the hosted cluster made in a cloud: delete them in the hosted cluster first.\n")
		}
	case o.CloudResources:
		line("what the hosted cluster made in a cloud: load balancers, volumes")
	case cloud:
		b.WriteString("Would stay: load balancers and volumes that the hosted cluster made in a cloud (--destroy-cloud-resources deletes them).\n")
	}
	if b.Len() == 0 {
		b.WriteString("  nothing\n")
	}
	if hc != nil {
		if err := checkDelete(ctx, o.Connect.DryRun, c, hc); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "Would be deleted:\n%sNothing has been changed.\n", &b)
	return err
}

// checkDelete asks the API server whether it would delete an object, if that was wanted.
func checkDelete(ctx context.Context, wanted connect.DryRun, c client.Client, obj client.Object) error {
	if wanted != connect.DryRunServer {
		return nil
	}
	uid := obj.GetUID()
	if err := c.Delete(ctx, obj, client.DryRunAll, client.Preconditions{UID: &uid}); err != nil {
		return fmt.Errorf("the API server would not delete %s: %w", connect.DescribeIn(c.Scheme(), obj), err)
	}
	return nil
}

// previewPool prints what the destruction of a NodePool would delete, and changes nothing.
func previewPool(ctx context.Context, o NodePoolOptions, c client.Client, pool *hyperv1.NodePool, out io.Writer) error {
	if err := checkDelete(ctx, o.Connect.DryRun, c, pool); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "Would be deleted:\n  NodePool %s/%s with %d workers (%d wanted), which are drained first\nNothing has been changed.\n",
		pool.Namespace, pool.Name, pool.Status.Replicas, ptr.Deref(pool.Spec.Replicas, pool.Status.Replicas))
	return err
}

func previewPools(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, line func(string, ...any)) error {
	pools := &hyperv1.NodePoolList{}
	if err := c.List(ctx, pools, client.InNamespace(hc.Namespace), client.Limit(500)); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	for i := range pools.Items {
		if p := &pools.Items[i]; p.Spec.ClusterName == hc.Name {
			line("NodePool %s/%s with %d workers (%d wanted)", p.Namespace, p.Name, p.Status.Replicas, ptr.Deref(p.Spec.Replicas, p.Status.Replicas))
		}
	}
	return nil
}

// previewPlane tells of the control plane's namespace: what is lost for good are its volumes.
func previewPlane(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, line func(string, ...any)) error {
	namespace, err := controlPlaneNamespace(ctx, c, hc)
	if err != nil || namespace == nil {
		return err
	}
	pods := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	if err := c.List(ctx, pods, client.InNamespace(namespace.Name), client.Limit(1000)); err != nil {
		return fmt.Errorf("listing Pods of namespace %s: %w", namespace.Name, err)
	}
	line("Namespace %s with everything in it, %d Pods", namespace.Name, len(pods.Items))
	claims := &corev1.PersistentVolumeClaimList{}
	if err := c.List(ctx, claims, client.InNamespace(namespace.Name), client.Limit(100)); err != nil {
		return fmt.Errorf("listing PersistentVolumeClaims of namespace %s: %w", namespace.Name, err)
	}
	for i := range claims.Items {
		size := claims.Items[i].Spec.Resources.Requests[corev1.ResourceStorage]
		line("PersistentVolumeClaim %s/%s with its data, %s", namespace.Name, claims.Items[i].Name, size.String())
	}
	return nil
}

// describe says which cluster it is: "clusters/demo (release registry.example.com/release:1, Available)".
func describe(hc *hyperv1.HostedCluster) string {
	state := "not available"
	if conditions.IsTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable)) {
		state = "available"
	}
	if !hc.DeletionTimestamp.IsZero() {
		state = "being deleted already"
	}
	return fmt.Sprintf("%s/%s (release %s, %s)", hc.Namespace, hc.Name, hc.Spec.Release.Image, state)
}
