// Package kubeapiserver is the component that is the hosted API.
//
// It is created together with etcd and not after it: kube-apiserver loads for about a second before it needs etcd, and then
// tries again until it gets an answer. Its first objects, the bindings that give our own operator its rights in the hosted
// cluster, are made by the control-plane-operator when the server is ready (bootstrap.go).
package kubeapiserver

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Name of the component.
const Name = names.KubeAPIServer

//go:embed assets
var assets embed.FS

// Names inside the pod.
const (
	container          = "kube-apiserver"
	auditLogsContainer = "audit-logs"
)

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{RequestServing: true, MultiZoneSpread: true}).
		WithDependencies("etcd").
		StartBeforeDependencies().
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("audit-config.yaml", component.AdaptManifest(func(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
			return settings.WriteAuditConfig(ctx.HCP, cm)
		})).
		WithManifestAdapter("encryption-config.yaml", component.When(encrypted), component.AdaptManifest(adaptEncryptionConfig), component.Locked()).
		WithManifestAdapter("auth-config.yaml", component.When(externalOIDC), component.AdaptManifest(adaptAuthentication)).
		WithManifestAdapter("egress-selector.yaml", component.When(tunnelled), component.AdaptManifest(adaptEgressSelector)).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		ReloadsFilesOf(reloaded...).
		WithCustomOperandsRolloutCheckFunc(bootstrapped).
		Build()
}

// reloaded are the volumes whose files kube-apiserver reads again: serving certificates, client certificates that it shows
// to kubelets, to aggregated servers and to etcd, the CA of the aggregator, and who may log in from outside. Not among them are the service account key,
// the audit policy, the encryption configuration, and the CAs by which it knows etcd and kubelets.
var reloaded = []string{"server-crt", "server-private-crt", "aggregator-crt", "aggregator-ca", "kubelet-client-crt", "etcd-client-crt", "client-ca", authenticationVolume}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, pod := ctx.HCP, &d.Spec.Template.Spec
	main := component.Container(pod, container)
	if main == nil {
		return errors.New("the asset has no container kube-apiserver")
	}
	args, err := arguments(ctx)
	if err != nil {
		return err
	}
	if ports := settings.NodePortRange(hcp); ports != "" {
		const flag = "--service-node-port-range="
		i := slices.IndexFunc(main.Args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
		main.Args[i] = flag + ports // in its place: another order would restart every API server
	}
	main.Args = append(main.Args, args...)
	main.Ports[0].ContainerPort = settings.APIPodPort(hcp)
	for _, env := range []struct{ name, annotation string }{
		{"GOGC", hyperv1.KubeAPIServerGOGCAnnotation},
		{"GOMEMLIMIT", hyperv1.KubeAPIServerGOMemoryLimitAnnotation},
	} {
		if value := hcp.Annotations[env.annotation]; value != "" {
			main.Env = append(main.Env, corev1.EnvVar{Name: env.name, Value: value})
		}
	}
	if !settings.Auditing(hcp) {
		component.RemoveContainer(pod, auditLogsContainer)
	}
	if err := persistAuditLogs(hcp, pod); err != nil {
		return err
	}
	if ok, _ := encrypted(ctx); ok {
		if err := addEncryption(ctx, d); err != nil {
			return err
		}
	}
	if ok, _ := externalOIDC(ctx); ok {
		component.AddVolume(pod, container, component.ConfigMapVolume(authenticationVolume, authenticationConfigMap), authenticationDir)
	}
	if secret := tokenWebhook(hcp); secret != "" {
		component.AddVolume(pod, container, component.SecretVolume("token-webhook", secret), tokenWebhookDir)
	}
	if hcp.Spec.AuditWebhook != nil && hcp.Spec.AuditWebhook.Name != "" {
		component.AddVolume(pod, container, component.SecretVolume("audit-webhook", hcp.Spec.AuditWebhook.Name), auditWebhookDir)
	}
	if ok, _ := tunnelled(ctx); ok {
		addTunnel(ctx, d)
	}
	for i, cert := range settings.APIServer(hcp).ServingCerts.NamedCertificates {
		component.AddVolume(pod, container, component.SecretVolume(namedVolume(i), cert.ServingCertificate.Name), namedDir(i))
	}
	return nil
}

// persistAuditLogs gives the Pod a volume for audit logs that outlives it, and larger files, where that is asked for.
func persistAuditLogs(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) error {
	s, err := settings.PersistentAuditLogs(hcp)
	if s == nil || err != nil {
		return err
	}
	main := component.Container(pod, container)
	for flag, value := range map[string]int32{"--audit-log-maxsize=": s.MaxSize, "--audit-log-maxbackup=": s.MaxBackup} {
		i := slices.IndexFunc(main.Args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
		main.Args[i] = flag + fmt.Sprint(value)
	}
	component.Volume(pod, auditlogs.Volume).VolumeSource = s.Source(Name)
	return nil
}

// Named certificates are counted from 1.
func namedVolume(i int) string { return fmt.Sprintf("named-certificate-%d", i+1) }
func namedDir(i int) string    { return fmt.Sprintf("/etc/kubernetes/certs/named-%d", i+1) }
