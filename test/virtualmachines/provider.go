package virtualmachines

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/test/objects"
)

const (
	// finalizer keeps a KubevirtMachine until its virtual machine is gone.
	finalizer = "kubevirtmachine.infrastructure.cluster.x-k8s.io/stand-in"
	// machineLabel names the KubevirtMachine on its virtual machine.
	machineLabel = "capk.cluster.x-k8s.io/kubevirt-machine-name"
	// userDataVolume is the disk from which a virtual machine reads its configuration.
	userDataVolume = "cloudinitvolume"
	// userDataKey is the key of its Secret.
	userDataKey = "userdata"

	provisioned, migratable = "VMProvisioned", "VMLiveMigratable"
)

// Provider stands in for the infrastructure provider of one hosted cluster.
type Provider struct {
	// Client may do what the operator lets the provider do in Namespace, that of the control plane. It sees standard groups.
	Client    client.Client
	Namespace string
}

// Pass brings every KubevirtMachine a step further.
func (p Provider) Pass(ctx context.Context) error {
	machines, err := objects.List(ctx, p.Client, machineKind, p.Namespace)
	if err != nil || len(machines) == 0 {
		return err
	}
	infra, err := p.infra(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range machines {
		errs = append(errs, p.machine(ctx, infra, &machines[i]))
	}
	return errors.Join(errs...)
}

// infra reaches the cluster that runs virtual machines: another one by the kubeconfig that the KubevirtCluster names, or else the management cluster.
func (p Provider) infra(ctx context.Context) (client.Client, error) {
	clusters, err := objects.List(ctx, p.Client, clusterKind, p.Namespace)
	if err != nil {
		return nil, err
	}
	if len(clusters) != 1 {
		return nil, fmt.Errorf("namespace %s has %d KubevirtClusters, want one", p.Namespace, len(clusters))
	}
	cluster := &kubevirtCluster{}
	if err := objects.Decode(&clusters[0], cluster); err != nil {
		return nil, err
	}
	ref := cluster.Spec.InfraSecret
	if ref == nil {
		return p.Client, nil
	}
	secret := &corev1.Secret{}
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the cluster that runs virtual machines: %w", err)
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("Secret %s/%s has no kubeconfig", ref.Namespace, ref.Name)
	}
	infra, err := client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster that runs virtual machines: %w", err)
	}
	return infra, nil
}

func (p Provider) machine(ctx context.Context, infra client.Client, u *unstructured.Unstructured) error {
	m := &kubevirtMachine{}
	if err := objects.Decode(u, m); err != nil {
		return err
	}
	vm := objects.New(VMKind, m.Spec.Template.Metadata.Namespace, m.Name)
	if vm.GetNamespace() == "" {
		vm.SetNamespace(m.Namespace)
	}
	err := infra.Get(ctx, client.ObjectKeyFromObject(vm), vm)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading virtual machine %s: %w", m.Name, err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return p.release(ctx, infra, u, vm, exists)
	}
	status := m.Status
	status.Conditions = slices.Clone(status.Conditions)
	switch {
	case exists:
		if err := p.report(ctx, infra, u, m, vm, &status); err != nil {
			return err
		}
	case m.Spec.ProviderID != "":
		status.Ready = false
		conditions.Set(&status.Conditions, time.Now(), conditions.False(provisioned, "VMDeleted", "the virtual machine is gone; a machine is not made twice: delete the Machine to have another one"))
	default:
		data, err := objects.UserData(ctx, p.Client, u)
		if err != nil {
			conditions.Set(&status.Conditions, time.Now(), conditions.False(provisioned, "WaitingForBootstrapData", err.Error()))
			break
		}
		conditions.Set(&status.Conditions, time.Now(), conditions.False(provisioned, "VMNotReady", "the virtual machine is being made"))
		if err := p.create(ctx, infra, u, m, vm, data); err != nil {
			return err
		}
	}
	return objects.Set(ctx, p.Client, u, "status", &status)
}

// create makes the virtual machine, after what it reads.
func (p Provider) create(ctx context.Context, infra client.Client, u *unstructured.Unstructured, m *kubevirtMachine, vm *unstructured.Unstructured, data []byte) error {
	if controllerutil.AddFinalizer(u, finalizer) {
		if err := p.Client.Update(ctx, u); err != nil {
			return fmt.Errorf("adding a finalizer to KubevirtMachine %s: %w", m.Name, err)
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: vm.GetNamespace(), Name: secretName(m.Name), Labels: m.Spec.Template.Metadata.Labels},
		Data: map[string][]byte{userDataKey: data}}
	err := infra.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = infra.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("writing the user data of %s: %w", m.Name, err)
	}
	spec, err := virtualMachineSpec(m)
	if err != nil {
		return err
	}
	made := objects.New(VMKind, vm.GetNamespace(), m.Name)
	labels := maps.Clone(m.Spec.Template.Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[machineLabel] = m.Name
	made.SetLabels(labels)
	made.SetAnnotations(m.Spec.Template.Metadata.Annotations)
	made.Object["spec"] = spec
	if err := infra.Create(ctx, made); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making virtual machine %s: %w", m.Name, err)
	}
	return nil
}

func secretName(machine string) string { return machine + "-userdata" }

// virtualMachineSpec is the template's with disks of this machine's own, and the one from which it reads its configuration.
func virtualMachineSpec(m *kubevirtMachine) (map[string]any, error) {
	spec := runtime.DeepCopyJSON(m.Spec.Template.Spec)
	names := map[string]string{}
	templates, _, err := unstructured.NestedSlice(spec, "dataVolumeTemplates")
	if err != nil {
		return nil, fmt.Errorf("KubevirtMachine %s: %w", m.Name, err)
	}
	for _, t := range templates {
		t, ok := t.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("KubevirtMachine %s: a dataVolumeTemplate is no object", m.Name)
		}
		name, _, _ := unstructured.NestedString(t, "metadata", "name")
		names[name] = m.Name + "-" + name
		if err := unstructured.SetNestedField(t, names[name], "metadata", "name"); err != nil {
			return nil, fmt.Errorf("KubevirtMachine %s: %w", m.Name, err)
		}
	}
	volumes, _, err := unstructured.NestedSlice(spec, "template", "spec", "volumes")
	if err != nil {
		return nil, fmt.Errorf("KubevirtMachine %s: %w", m.Name, err)
	}
	for _, v := range volumes {
		if v, ok := v.(map[string]any); ok {
			if name, _, _ := unstructured.NestedString(v, "dataVolume", "name"); names[name] != "" {
				v["dataVolume"] = map[string]any{"name": names[name]}
			}
		}
	}
	disks, _, err := unstructured.NestedSlice(spec, "template", "spec", "domain", "devices", "disks")
	if err != nil {
		return nil, fmt.Errorf("KubevirtMachine %s: %w", m.Name, err)
	}
	for path, value := range map[string][]any{
		"volumes": append(volumes, map[string]any{"name": userDataVolume, "cloudInitConfigDrive": map[string]any{"secretRef": map[string]any{"name": secretName(m.Name)}}}),
		"disks":   append(disks, map[string]any{"name": userDataVolume, "disk": map[string]any{"bus": "virtio"}}),
		"":        templates,
	} {
		fields := map[string][]string{"": {"dataVolumeTemplates"}, "volumes": {"template", "spec", "volumes"}, "disks": {"template", "spec", "domain", "devices", "disks"}}[path]
		if err := unstructured.SetNestedSlice(spec, value, fields...); err != nil {
			return nil, fmt.Errorf("KubevirtMachine %s: %w", m.Name, err)
		}
	}
	return spec, nil
}

// report says of a machine what its virtual machine's instance says.
func (p Provider) report(ctx context.Context, infra client.Client, u *unstructured.Unstructured, m *kubevirtMachine, vm *unstructured.Unstructured, s *machineStatus) error {
	o, i := objects.New(VMIKind, vm.GetNamespace(), vm.GetName()), &instance{}
	if err := infra.Get(ctx, client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading instance %s: %w", m.Name, err)
	}
	if err := objects.Decode(o, i); err != nil {
		return err
	}
	addresses := []address{{Type: "Hostname", Address: m.Name}, {Type: "InternalDNS", Address: m.Name}}
	for _, n := range i.Status.Interfaces {
		if n.IP != "" {
			addresses = append(addresses, address{Type: "InternalIP", Address: n.IP})
		}
	}
	if i.Status.Phase != running || len(addresses) < 3 {
		conditions.Set(&s.Conditions, time.Now(), conditions.False(provisioned, "VMNotReady", "the virtual machine doesn't run yet"))
		return nil
	}
	if m.Spec.ProviderID == "" {
		before := u.DeepCopy()
		if err := unstructured.SetNestedField(u.Object, providerID(m.Name), "spec", "providerID"); err != nil {
			return fmt.Errorf("setting the provider ID of %s: %w", m.Name, err)
		}
		if err := p.Client.Patch(ctx, u, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("writing the provider ID of %s: %w", m.Name, err)
		}
	}
	s.Ready, s.Addresses = true, addresses
	moves := conditions.Unknown(migratable, "Unknown", "")
	if c := conditions.Get(i.Status.Conditions, "LiveMigratable"); c != nil {
		moves = conditions.New(migratable, c.Status, c.Reason, c.Message)
	}
	conditions.Set(&s.Conditions, time.Now(), conditions.True(provisioned, "VMReady", ""), moves)
	return nil
}

// release removes the virtual machine, and lets go of the machine when it is gone.
func (p Provider) release(ctx context.Context, infra client.Client, u, vm *unstructured.Unstructured, exists bool) error {
	if exists {
		if vm.GetDeletionTimestamp() == nil {
			if err := infra.Delete(ctx, vm); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting virtual machine %s: %w", vm.GetName(), err)
			}
		}
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: vm.GetNamespace(), Name: secretName(u.GetName())}}
	if slices.Contains(u.GetFinalizers(), finalizer) {
		if err := infra.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the user data of %s: %w", u.GetName(), err)
		}
	}
	if controllerutil.RemoveFinalizer(u, finalizer) {
		if err := p.Client.Update(ctx, u); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("removing the finalizer of KubevirtMachine %s: %w", u.GetName(), err)
		}
	}
	return nil
}
