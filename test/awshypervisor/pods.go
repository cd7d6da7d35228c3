package awshypervisor

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods is a guest whose machines are privileged pods, as those of platform Local are: the image's init reads the instance's user data and starts a kubelet
// with the node's name and provider ID. Without a cloud controller nobody else would write that ID.
type Pods struct {
	// Client is of the management cluster; Namespace is where the pods run, and must allow privileged ones.
	Client    client.Client
	Namespace string
	// Image is that of a machine, such as HOST/hypershift/node:1.36.3.
	Image string
	API   *ec2.Client
	// Log tells what went wrong; it is tried again.
	Log func(format string, args ...any)
}

var _ Guest = Pods{}

// Boot implements Guest.
func (p Pods) Boot(ctx context.Context, i types.Instance) {
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: sdk.ToString(i.InstanceId)}, &corev1.Pod{})
	if apierrors.IsNotFound(err) {
		err = p.create(ctx, i)
	}
	if err != nil && ctx.Err() == nil {
		p.Log("booting instance %s: %v", sdk.ToString(i.InstanceId), err)
	}
}

func (p Pods) create(ctx context.Context, i types.Instance) error {
	data, err := UserData(ctx, p.API, sdk.ToString(i.InstanceId))
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: sdk.ToString(i.InstanceId)}, Data: map[string][]byte{"value": []byte(data)}}
	if err := p.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making its user data: %w", err)
	}
	return client.IgnoreAlreadyExists(p.Client.Create(ctx, p.pod(i)))
}

// pod is the machine of an instance.
func (p Pods) pod(i types.Instance) *corev1.Pod {
	name := sdk.ToString(i.InstanceId)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure, TerminationGracePeriodSeconds: ptr.To[int64](10),
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			Containers: []corev1.Container{{
				Name: "machine", Image: p.Image,
				Env: []corev1.EnvVar{
					{Name: "MACHINE_PROVIDER_ID", Value: ProviderID(i)}, {Name: "MACHINE_NODE_NAME", Value: sdk.ToString(i.PrivateDnsName)},
					{Name: "MACHINE_NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
				},
				SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0)},
				VolumeMounts:    []corev1.VolumeMount{{Name: "disk", MountPath: "/var"}, {Name: "user-data", MountPath: "/machine/user-data", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{
				{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "user-data", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: ptr.To[int32](0o400)}}},
			},
		},
	}
}

// End implements Guest.
func (p Pods) End(ctx context.Context, i types.Instance) {
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: sdk.ToString(i.InstanceId)}
	for _, obj := range []client.Object{&corev1.Pod{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}} {
		if err := p.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			p.Log("ending instance %s: %v", meta.Name, err)
		}
	}
}
