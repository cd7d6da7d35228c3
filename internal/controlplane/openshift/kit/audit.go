package kit

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
)

// AuditWebhookDir is where the Secret of the audit webhook is mounted, auditWebhookKey its kubeconfig, and auditBackoff how long a server waits
// before it sends an event for the second time.
const (
	AuditWebhookDir = "/etc/kubernetes/auditwebhook"
	auditWebhookKey = "webhook-kubeconfig"
	auditBackoff    = "5s"
)

// auditLogs is the container that prints the audit log of the one beside it.
const auditLogs = "audit-logs"

// AuditConfig writes the audit policy of the control plane into a ConfigMap, as OpenShift's API servers have it: it says the same as that of
// Kubernetes releases, in OpenShift's words, and deletions of whole collections of identities are logged without their bodies.
func AuditConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	if err := settings.WriteAuditConfig(ctx.HCP, cm); err != nil {
		return err
	}
	return EditConfig(cm, settings.AuditPolicyKey, func(policy map[string]any) error {
		Section(policy, "metadata")["name"] = "policy"
		rules, _ := policy["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			resources, _ := rule["resources"].([]any)
			switch {
			case rule["level"] == "None" && rule["users"] != nil:
				rule["namespaces"] = List([]string{""})
			case rule["level"] == "Metadata" && len(resources) == 0:
				rule["omitStages"] = policy["omitStages"]
			case rule["level"] == "RequestResponse" && len(resources) > 0:
				rule["verbs"] = List([]string{"create", "update", "patch", "delete"})
			}
		}
		return nil
	})
}

// AuditWebhookSettings are how a server sends audit events to the webhook: names of flags with their values. There are none without a webhook.
func AuditWebhookSettings(ctx component.WorkloadContext) [][2]string {
	if ctx.HCP.Spec.AuditWebhook == nil {
		return nil
	}
	return [][2]string{
		{"audit-webhook-config-file", AuditWebhookDir + "/" + auditWebhookKey}, {"audit-webhook-mode", "batch"}, {"audit-webhook-initial-backoff", auditBackoff},
	}
}

// AuditWebhookArgs are AuditWebhookSettings as flags.
func AuditWebhookArgs(ctx component.WorkloadContext) (args []string) {
	for _, s := range AuditWebhookSettings(ctx) {
		args = append(args, "--"+s[0]+"="+s[1])
	}
	return args
}

// Audit completes the pod of a server that logs requests: it mounts the Secret of the audit webhook, if there is one, as the volume, and takes away
// the container that prints the log when nothing is logged. A webhook whose Secret isn't there is an error: the pods couldn't start.
func Audit(ctx component.WorkloadContext, pod *corev1.PodSpec, container, volume string) error {
	if settings.AuditProfile(ctx.HCP) == configv1.NoneAuditProfileType {
		component.RemoveContainer(pod, auditLogs)
	}
	ref := ctx.HCP.Spec.AuditWebhook
	if ref == nil {
		return nil
	}
	if ref.Name == "" {
		return errors.New("spec.auditWebhook.name is empty: name a Secret whose key " + auditWebhookKey + " is a kubeconfig, or remove spec.auditWebhook")
	}
	if err := Present(ctx, &corev1.Secret{}, "spec.auditWebhook.name", ref.Name, auditWebhookKey); err != nil {
		return err
	}
	Mount(pod, container, component.SecretVolume(volume, ref.Name), AuditWebhookDir)
	return nil
}

// Present is an error unless an object that a field of the HostedControlPlane names is in its namespace. Previews do without.
func Present(ctx component.WorkloadContext, obj client.Object, field, name, key string) error {
	if ctx.Preview() {
		return nil
	}
	kind := "Secret"
	if _, ok := obj.(*corev1.ConfigMap); ok {
		kind = "ConfigMap"
	}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: there is no %s %s in namespace %s: create it, with key %s, in the namespace of the HostedCluster", field, kind, name, ctx.HCP.Namespace, key)
	}
	if err != nil {
		return fmt.Errorf("%s: reading %s %s: %w", field, kind, name, err)
	}
	return nil
}
