package virtualmachines

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/test/machinepods"
	"hcp.internal/platform/test/objects"
)

// vmFinalizer keeps a VirtualMachine until it has ended.
const vmFinalizer = "kubevirt.io/virtualMachineControllerFinalize"

// succeeded is the phase of disks that have been imported.
const succeeded = "Succeeded"

// Virt stands in for KubeVirt and its importer: a VirtualMachine whose RunStrategy is Always runs, as a pod, when its disks are there. What disks hold is
// not looked at: the pod's image is what boots.
type Virt struct {
	Client client.Client
	// Namespace that is looked at; empty: all.
	Namespace string
	Pods      machinepods.Pods
}

// Pass looks at each disk and each virtual machine.
func (v Virt) Pass(ctx context.Context) error {
	disks, err := objects.List(ctx, v.Client, DataVolumeKind, v.Namespace)
	if err != nil {
		return err
	}
	var errs []error
	imported := map[client.ObjectKey]bool{}
	for i := range disks {
		phase, _, _ := unstructured.NestedString(disks[i].Object, "status", "phase")
		imported[client.ObjectKeyFromObject(&disks[i])] = phase == succeeded
	}
	for i := range disks {
		errs = append(errs, v.disk(ctx, &disks[i], imported))
	}
	machines, err := objects.List(ctx, v.Client, VMKind, v.Namespace)
	if err != nil {
		return err
	}
	for i := range machines {
		errs = append(errs, v.machine(ctx, &machines[i], imported))
	}
	return errors.Join(errs...)
}

// disk says that a disk is imported; one that clones another when that is there.
func (v Virt) disk(ctx context.Context, u *unstructured.Unstructured, imported map[client.ObjectKey]bool) error {
	phase := map[string]any{"phase": succeeded, "progress": "100.0%"}
	if name, found, _ := unstructured.NestedString(u.Object, "spec", "source", "pvc", "name"); found {
		namespace, _, _ := unstructured.NestedString(u.Object, "spec", "source", "pvc", "namespace")
		if !imported[client.ObjectKey{Namespace: namespace, Name: name}] {
			phase = map[string]any{"phase": "CloneScheduled"}
		}
	}
	return objects.Set(ctx, v.Client, u, "status", &phase)
}

func (v Virt) machine(ctx context.Context, u *unstructured.Unstructured, imported map[client.ObjectKey]bool) error {
	vm := &virtualMachine{}
	if err := objects.Decode(u, vm); err != nil {
		return err
	}
	if !vm.DeletionTimestamp.IsZero() || vm.Spec.RunStrategy != "Always" {
		return v.end(ctx, u, vm)
	}
	if controllerutil.AddFinalizer(u, vmFinalizer) {
		return v.Client.Update(ctx, u) // the next pass goes on
	}
	ready, err := v.disks(ctx, vm, imported)
	if err != nil {
		return err
	}
	status := vmStatus{Created: true, PrintableStatus: "Provisioning"}
	if ready {
		if status.Ready, err = v.run(ctx, vm); err != nil {
			return err
		}
		status.PrintableStatus = "Starting"
	}
	if status.Ready {
		status.PrintableStatus = running
	}
	return objects.Set(ctx, v.Client, u, "status", &status)
}

func owned(vm *virtualMachine) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: VMKind.GroupVersion().String(), Kind: VMKind.Kind, Name: vm.Name, UID: vm.UID}}
}

// disks makes those of a virtual machine, and tells whether all are imported.
func (v Virt) disks(ctx context.Context, vm *virtualMachine, imported map[client.ObjectKey]bool) (ready bool, err error) {
	ready = true
	for _, t := range vm.Spec.DataVolumes {
		key := client.ObjectKey{Namespace: vm.Namespace, Name: t.Metadata.Name}
		if imported[key] {
			continue
		}
		ready = false
		dv := objects.New(DataVolumeKind, key.Namespace, key.Name)
		dv.SetLabels(t.Metadata.Labels)
		dv.SetOwnerReferences(owned(vm))
		dv.Object["spec"] = t.Spec
		if err := v.Client.Create(ctx, dv); client.IgnoreAlreadyExists(err) != nil {
			return false, fmt.Errorf("making disk %s: %w", key, err)
		}
	}
	return ready, nil
}

// run starts a virtual machine, and tells whether it runs.
func (v Virt) run(ctx context.Context, vm *virtualMachine) (bool, error) {
	u, i := objects.New(VMIKind, vm.Namespace, vm.Name), &instance{}
	err := v.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
	if apierrors.IsNotFound(err) {
		u.SetLabels(vm.Spec.Template.Metadata.Labels)
		u.SetAnnotations(vm.Spec.Template.Metadata.Annotations)
		u.SetOwnerReferences(owned(vm))
		u.Object["spec"] = runtime.DeepCopyJSON(vm.Spec.Template.Spec)
		err = v.Client.Create(ctx, u)
	}
	if err != nil {
		return false, fmt.Errorf("making instance %s: %w", vm.Name, err)
	}
	if err := objects.Decode(u, i); err != nil {
		return false, err
	}
	data, err := v.userData(ctx, i)
	if err != nil {
		return false, err
	}
	state, err := v.Pods.Boot(ctx, machinepods.Machine{Name: vm.Name, Node: vm.Name, ProviderID: providerID(vm.Name), UserData: data})
	if err != nil {
		return false, err
	}
	s := i.Status
	s.Phase = "Scheduling"
	if state.Running {
		s.Phase, s.Interfaces = running, []networkInterface{{Name: "default", IP: state.Address}}
		conditions.Set(&s.Conditions, time.Now(), conditions.True("Ready", "Running", ""), conditions.True("LiveMigratable", "Migratable", ""))
	}
	return state.Running, objects.Set(ctx, v.Client, u, "status", &s)
}

// userData is on the disk that cloud-init and Ignition look at.
func (v Virt) userData(ctx context.Context, i *instance) ([]byte, error) {
	for _, volume := range i.Spec.Volumes {
		if volume.CloudInit == nil {
			continue
		}
		secret := &corev1.Secret{}
		if err := v.Client.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: volume.CloudInit.Secret.Name}, secret); err != nil {
			return nil, fmt.Errorf("reading the user data of instance %s: %w", i.Name, err)
		}
		return secret.Data[userDataKey], nil
	}
	return nil, fmt.Errorf("instance %s has no disk with user data", i.Name)
}

// end stops a virtual machine. Its disks and its instance go with it.
func (v Virt) end(ctx context.Context, u *unstructured.Unstructured, vm *virtualMachine) error {
	gone, err := v.Pods.End(ctx, vm.Name)
	if err != nil || !gone {
		return err
	}
	dependents := []*unstructured.Unstructured{objects.New(VMIKind, vm.Namespace, vm.Name)}
	if !vm.DeletionTimestamp.IsZero() {
		for _, t := range vm.Spec.DataVolumes {
			dependents = append(dependents, objects.New(DataVolumeKind, vm.Namespace, t.Metadata.Name))
		}
	}
	for _, d := range dependents {
		if err := v.Client.Delete(ctx, d); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", d.GetKind(), d.GetName(), err)
		}
	}
	if vm.DeletionTimestamp.IsZero() {
		return objects.Set(ctx, v.Client, u, "status", &vmStatus{PrintableStatus: "Stopped"})
	}
	if controllerutil.RemoveFinalizer(u, vmFinalizer) {
		if err := v.Client.Update(ctx, u); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("letting go of virtual machine %s: %w", vm.Name, err)
		}
	}
	return nil
}
