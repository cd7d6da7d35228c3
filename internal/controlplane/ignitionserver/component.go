// Package ignitionserver is the component that hands new machines their configuration.
//
// It also writes what the HostedCluster says about all machines, SSH key and image mirrors, into ConfigMaps that the NodePool
// controller puts into the configuration of each pool.
package ignitionserver

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/endpoints"
)

// Name of the component.
const Name = names.IgnitionServer

// configKey holds the manifest in a ConfigMap that goes into the configuration of machines.
const configKey = "config"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true, MultiZoneSpread: true}).
		WithPredicate(wanted).
		// It needs neither, but nor does anybody need it before there is an API to join, and processors are scarce until then.
		WithDependencies("etcd").
		StartBeforeDependencies("etcd").
		SleepUntil(hasToken).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		WithManifestAdapter("service.yaml", component.AdaptManifest(adaptService)).
		WithManifestAdapter("fips.yaml", component.AdaptManifest(adaptFIPS)).
		WithManifestAdapter("worker-ssh.yaml", component.AdaptManifest(adaptSSH)).
		WithManifestAdapter("image-content-source.yaml", component.When(hasSources), component.AdaptManifest(adaptSources)).
		// The server reads its certificate again when it changes.
		ReloadsFilesOf("serving-cert").
		Build()
}

// wanted is false for releases of which no machine can be made, and where the user does without.
func wanted(ctx component.WorkloadContext) (bool, error) {
	if _, disabled := ctx.HCP.Annotations[hyperv1.DisableIgnitionServerAnnotation]; disabled {
		return false, nil
	}
	if ctx.UserRelease.Kubernetes {
		return len(ctx.UserRelease.Missing("kubelet", "pause")) == 0, nil
	}
	return len(ctx.UserRelease.Missing("machine-config-operator")) == 0, nil
}

// hasToken tells that there is a NodePool: each has Secrets with tokens, for which the server makes payloads.
func hasToken(ctx component.WorkloadContext) (bool, error) {
	names, err := tokens(ctx)
	return len(names) > 0, err
}

// tokens are the names of the Secrets with tokens, sorted.
func tokens(ctx component.WorkloadContext) ([]string, error) {
	secrets := &corev1.SecretList{}
	if err := ctx.Reader.List(ctx.Context, secrets, client.InNamespace(ctx.HCP.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Secrets with tokens of machines: %w", err)
	}
	var names []string
	for i := range secrets.Items {
		if secrets.Items[i].Annotations[hyperv1.TokenSecretAnnotation] == "true" {
			names = append(names, secrets.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Rights are those of the server, whatever the release: what payloads are made of, the tokens that there are, and no other Secret.
func Rights(ctx component.WorkloadContext) ([]rbacv1.PolicyRule, error) {
	rules, err := component.RoleRules(assets, "assets/role.yaml", Name)
	if err != nil {
		return nil, err
	}
	role := &rbacv1.Role{Rules: rules}
	err = adaptRole(ctx, role)
	return role.Rules, err
}

// adaptRole lets the server use the tokens that there are, and no other Secret.
func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) error {
	names, err := tokens(ctx)
	if err != nil || len(names) == 0 {
		return err // a rule without names would be for all
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get", "list", "watch", "patch", "delete"},
	})
	return nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Args = append(main.Args, "--platform="+string(ctx.HCP.Spec.Platform.Type))
	if ctx.RegistryOverrides != "" {
		main.Args = append(main.Args, "--registry-overrides="+ctx.RegistryOverrides)
	}
	return nil
}

func adaptService(ctx component.WorkloadContext, svc *corev1.Service) error {
	s := endpoints.StrategyFor(ctx.HCP, hyperv1.Ignition)
	if s == nil || s.Type != hyperv1.NodePort {
		return nil
	}
	svc.Spec.Type = corev1.ServiceTypeNodePort
	if s.NodePort != nil {
		svc.Spec.Ports[0].NodePort = s.NodePort.Port
	}
	return nil
}

// manifest is a MachineConfig or an ImageDigestMirrorSet.
func manifest(apiVersion, kind, name string, spec map[string]any) (map[string]string, error) {
	meta := map[string]any{"name": name}
	if kind == "MachineConfig" {
		meta["labels"] = map[string]string{"machineconfiguration.openshift.io/role": "worker"}
	}
	data, err := yaml.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind, name, err)
	}
	return map[string]string{configKey: string(data)}, nil
}

func adaptFIPS(ctx component.WorkloadContext, cm *corev1.ConfigMap) (err error) {
	cm.Data, err = manifest("machineconfiguration.openshift.io/v1", "MachineConfig", "30-fips", map[string]any{"fips": ctx.HCP.Spec.FIPS})
	return err
}

func adaptSSH(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	ignition := map[string]any{"ignition": map[string]any{"version": "3.2.0"}}
	key, err := sshKey(ctx)
	if err != nil {
		return err
	}
	if key != "" {
		ignition["passwd"] = map[string]any{"users": []any{map[string]any{"name": "core", "sshAuthorizedKeys": []string{key}}}}
	}
	cm.Data, err = manifest("machineconfiguration.openshift.io/v1", "MachineConfig", "99-worker-ssh", map[string]any{"config": ignition})
	return err
}

// sshKey is the user's public key; empty when there is none.
func sshKey(ctx component.WorkloadContext) (string, error) {
	if ctx.HCP.Spec.SSHKey.Name == "" {
		return "", nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: names.SSHKey}
	if err := ctx.Reader.Get(ctx.Context, key, secret); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("waiting for secret %s, the copy of spec.sshKey of the HostedCluster", key)
	} else if err != nil {
		return "", fmt.Errorf("reading secret %s: %w", key, err)
	}
	return strings.TrimSpace(string(secret.Data[names.SSHPublicKey])), nil
}

func hasSources(ctx component.WorkloadContext) (bool, error) {
	return len(ctx.HCP.Spec.ImageContentSources) > 0, nil
}

func adaptSources(ctx component.WorkloadContext, cm *corev1.ConfigMap) (err error) {
	var mirrors []any
	for _, s := range ctx.HCP.Spec.ImageContentSources {
		mirrors = append(mirrors, map[string]any{"source": s.Source, "mirrors": s.Mirrors})
	}
	cm.Data, err = manifest("config.openshift.io/v1", "ImageDigestMirrorSet", "image-content-sources", map[string]any{"imageDigestMirrors": mirrors})
	return err
}
