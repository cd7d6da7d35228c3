//go:build aws

package awsprivate

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/test/awsemulator"
)

// The API server of the test is the hosted cluster's as well: it makes the plugin's tokens.
func TestKMS(t *testing.T) {
	w := newWorld(t, "kms")
	g := NewWithT(t)
	ctx := t.Context()
	cfg, err := session.Load(ctx, session.Options{Agent: "test", Region: region})
	g.Expect(err).NotTo(HaveOccurred())
	key, err := kms.NewFromConfig(cfg).CreateKey(ctx, &kms.CreateKeyInput{})
	g.Expect(err).NotTo(HaveOccurred())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kms-provider"}}
	if err := w.c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}); !apierrors.IsAlreadyExists(err) {
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(w.c.Create(ctx, account)).To(Succeed())
	t.Cleanup(func() { _ = w.c.Delete(context.Background(), account) })
	g.Expect(w.c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: names.ServiceNetworkKubeconfig},
		Data: map[string][]byte{"kubeconfig": testenv.Start(t).Kubeconfig(t)}})).To(Succeed())

	says := func(match OmegaMatcher) {
		t.Helper()
		NewWithT(t).Eventually(func(g Gomega) {
			hcp := &hyperv1.HostedControlPlane{}
			g.Expect(w.c.Get(ctx, client.ObjectKeyFromObject(w.hcp), hcp)).To(Succeed())
			g.Expect(conditions.Get(hcp.Status.Conditions, hyperv1.ValidAWSKMSConfig)).To(match)
		}, patience, often).Should(Succeed())
	}
	change := func(change func(*hyperv1.HostedControlPlane) error) {
		t.Helper()
		NewWithT(t).Eventually(func() error {
			if err := w.c.Get(ctx, client.ObjectKeyFromObject(w.hcp), w.hcp); err != nil {
				return err
			}
			return change(w.hcp)
		}, patience, often).Should(Succeed())
	}
	t.Run("When no key is configured it should not be known", func(t *testing.T) {
		says(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", "StatusUnknown")))
	})
	t.Run("When the role can't be taken on it should name role and code", func(t *testing.T) {
		w.aws.Fail(awsemulator.Fault{Service: "sts", Action: "AssumeRoleWithWebIdentity", Code: "AccessDenied", Status: 403})
		change(func(hcp *hyperv1.HostedControlPlane) error {
			conditions.Set(&hcp.Status.Conditions, time.Now(), conditions.True(hyperv1.KubeAPIServerAvailable, "AsExpected", ""))
			return w.c.Status().Update(ctx, hcp)
		})
		change(func(hcp *hyperv1.HostedControlPlane) error {
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{
				Region: region, ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: *key.KeyMetadata.Arn}, Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: arn("kms-provider")},
			}}}
			return w.c.Update(ctx, hcp)
		})
		says(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "InvalidIAMRole"), HaveField("Message", And(ContainSubstring(arn("kms-provider")), ContainSubstring("AccessDenied")))))
	})
	t.Run("When the key is disabled it should name key, code and remedy, and not what changes", func(t *testing.T) {
		w.aws.Heal()
		w.aws.Fail(awsemulator.Fault{Service: "kms", Action: "Encrypt", Code: "DisabledException"})
		says(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "AWSError"), HaveField("Message", And(ContainSubstring(*key.KeyMetadata.Arn), ContainSubstring("DisabledException"),
			ContainSubstring("enable the KMS key"), Not(ContainSubstring("as the test"))))))
	})
	t.Run("When role and key work it should be valid", func(t *testing.T) {
		w.aws.Heal()
		says(HaveField("Status", metav1.ConditionTrue))
	})
}
