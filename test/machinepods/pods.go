// Package machinepods boots machines as privileged pods, as those of platform Local are, for stand-ins of clouds and of hosts: what they say runs, runs here.
package machinepods

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods are where machines run.
type Pods struct {
	// Client is of the management cluster; Namespace is where the pods run, and must allow privileged ones.
	Client    client.Client
	Namespace string
	// Image is that of a machine, such as HOST/hypershift/node:1.36.3: its init reads the user data and starts a kubelet.
	Image string
}

// Machine is one to boot. Without a cloud controller nobody else would give its node the provider ID, so the kubelet is told it.
type Machine struct {
	// Name is that of the pod, Node that of the node.
	Name, Node, ProviderID string
	// UserData is an Ignition config.
	UserData []byte
	Labels   map[string]string
}

// State is what there is of a machine.
type State struct {
	Exists, Running bool
	// Address is the pod's; empty while it has none.
	Address string
}

// Boot starts a machine unless it is there, and tells how it is. A machine that runs keeps the user data that it was booted with.
func (p Pods) Boot(ctx context.Context, m Machine) (State, error) {
	if s, err := p.Look(ctx, m.Name); err != nil || s.Exists {
		return s, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: m.Name, Labels: m.Labels}, Data: map[string][]byte{"value": m.UserData}}
	if err := p.Client.Create(ctx, secret); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return State{}, fmt.Errorf("making the user data of machine %s: %w", m.Name, err)
		}
		// It is that of an earlier machine of this name, or of a boot that was interrupted.
		if err := p.Client.Update(ctx, secret); err != nil {
			return State{}, fmt.Errorf("writing the user data of machine %s: %w", m.Name, err)
		}
	}
	if err := client.IgnoreAlreadyExists(p.Client.Create(ctx, p.pod(m))); err != nil {
		return State{}, fmt.Errorf("making the pod of machine %s: %w", m.Name, err)
	}
	return State{Exists: true}, nil
}

// Look tells how a machine is. One whose pod is being deleted still exists.
func (p Pods) Look(ctx context.Context, name string) (State, error) {
	pod := &corev1.Pod{}
	if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name}, pod); err != nil {
		if apierrors.IsNotFound(err) {
			return State{}, nil
		}
		return State{}, fmt.Errorf("reading the pod of machine %s: %w", name, err)
	}
	return State{Exists: true, Running: pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero(), Address: pod.Status.PodIP}, nil
}

// End stops a machine and forgets its disk. It is called until gone is true.
func (p Pods) End(ctx context.Context, name string) (gone bool, err error) {
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: name}
	for _, obj := range []client.Object{&corev1.Secret{ObjectMeta: meta}, &corev1.Pod{ObjectMeta: meta}} {
		err = p.Client.Delete(ctx, obj)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("ending machine %s: %w", name, err)
		}
	}
	return err != nil, nil // there was no pod to delete
}

// pod is a machine.
func (p Pods) pod(m Machine) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: m.Name, Labels: maps.Clone(m.Labels)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: ptr.To[int64](10),
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			Containers: []corev1.Container{{
				Name: "machine", Image: p.Image,
				Env: []corev1.EnvVar{
					{Name: "MACHINE_PROVIDER_ID", Value: m.ProviderID}, {Name: "MACHINE_NODE_NAME", Value: m.Node},
					{Name: "MACHINE_NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
				},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0)},
				VolumeMounts:    []corev1.VolumeMount{{Name: "disk", MountPath: "/var"}, {Name: "user-data", MountPath: "/machine/user-data", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "user-data", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: m.Name, DefaultMode: ptr.To[int32](0o400)}}},
			},
		},
	}
}
