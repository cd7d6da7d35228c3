//go:build aws

package awsprivate

import (
	"context"
	"encoding/base64"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/awsemulator"
	"hcp.internal/platform/test/awshypervisor"
	"hcp.internal/platform/test/machinepods"
)

// There is no kubelet here, so no pod runs; the live test has one.
func TestHypervisor(t *testing.T) {
	g := NewWithT(t)
	e := awsemulator.Start(t)
	e.Use(t)
	cfg, err := session.Load(t.Context(), session.Options{Agent: "test", Region: region})
	g.Expect(err).NotTo(HaveOccurred())
	api, env := ec2.NewFromConfig(cfg), testenv.Start(t)
	c, ns := env.Client(t, clientgoscheme.Scheme), env.Namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}}
	g.Expect(client.IgnoreAlreadyExists(c.Create(t.Context(), account))).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awshypervisor.Run(ctx, api, awshypervisor.Pods{Pods: machinepods.Pods{Client: c, Namespace: ns, Image: "r/node:1"}, API: api, Log: t.Logf})
	}()
	t.Cleanup(func() { stop(); <-ended })
	const data = `{"ignition":{"version":"3.2.0"}}`
	images, err := api.DescribeImages(ctx, &ec2.DescribeImagesInput{})
	g.Expect(err).NotTo(HaveOccurred())
	made, err := api.RunInstances(ctx, &ec2.RunInstancesInput{ImageId: images.Images[0].ImageId, MinCount: sdk.Int32(1), MaxCount: sdk.Int32(1), UserData: sdk.String(base64.StdEncoding.EncodeToString([]byte(data)))})
	g.Expect(err).NotTo(HaveOccurred())
	i := made.Instances[0]
	key := client.ObjectKey{Namespace: ns, Name: sdk.ToString(i.InstanceId)}
	t.Run("When an instance runs it should be booted with its user data, name and provider ID", func(t *testing.T) {
		g := NewWithT(t)
		pod, secret := &corev1.Pod{}, &corev1.Secret{}
		g.Eventually(func() error { return c.Get(ctx, key, pod) }, patience, often).Should(Succeed())
		g.Expect(c.Get(ctx, key, secret)).To(Succeed())
		g.Expect(string(secret.Data["value"])).To(Equal(data))
		g.Expect(pod.Spec.Containers[0].Env).To(ContainElements(corev1.EnvVar{Name: "MACHINE_PROVIDER_ID", Value: awshypervisor.ProviderID(i)}, HaveField("Name", "MACHINE_NODE_NAME")))
	})
	t.Run("When it is terminated from outside nothing of it should be left", func(t *testing.T) {
		g := NewWithT(t)
		_, err := api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{key.Name}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(func() bool {
			return client.IgnoreNotFound(c.Get(ctx, key, &corev1.Pod{})) == nil && client.IgnoreNotFound(c.Get(ctx, key, &corev1.Secret{})) == nil &&
				c.Get(ctx, key, &corev1.Secret{}) != nil
		}, patience, often).Should(BeTrue())
	})
}
