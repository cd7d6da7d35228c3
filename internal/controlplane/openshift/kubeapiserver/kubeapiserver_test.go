package kubeapiserver

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/static"
	"hcp.internal/platform/internal/release"
)

const gates = `{status: {featureGates: [{enabled: [{name: OpenShiftPodSecurityAdmission}, {name: DynamicResourceAllocation}], disabled: [{name: ValidatingAdmissionPolicy}]}]}}`

func contextOf(t *testing.T, change func(*hyperv1.HostedControlPlane), objs ...client.Object) component.WorkloadContext {
	t.Helper()
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ns"}}
	hcp.Spec.Etcd.ManagementType = hyperv1.Managed
	if change != nil {
		change(hcp)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	objs = append(objs, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: kit.FeatureGateConfigMap, Namespace: "ns"}, Data: map[string]string{kit.FeatureGateKey: gates}})
	reader, err := static.NewReader(scheme, objs...)
	if err != nil {
		t.Fatal(err)
	}
	r := &release.Release{Version: "4.22.0"}
	ctx := component.WorkloadContext{Context: t.Context(), Reader: reader, HCP: hcp, Release: r, UserRelease: r, Unsigned: true}
	ctx.Infra.AdvertiseAddress = "172.20.0.1"
	return ctx
}

func configOf(t *testing.T, ctx component.WorkloadContext) map[string]any {
	t.Helper()
	cm, config := &corev1.ConfigMap{}, map[string]any{}
	if err := adaptConfig(ctx, cm); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(cm.Data["config.json"]), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestConfig(t *testing.T) {
	t.Run("When gates are on what belongs to them should be, and forced ones whatever the payload says", func(t *testing.T) {
		g := NewWithT(t)
		config := configOf(t, contextOf(t, nil))
		args := config["apiServerArguments"].(map[string]any)
		g.Expect(args["feature-gates"]).To(Equal([]any{"DynamicResourceAllocation=true", "OpenShiftPodSecurityAdmission=true", "StructuredAuthenticationConfiguration=true", "ValidatingAdmissionPolicy=true"}))
		g.Expect(args["runtime-config"]).To(ContainElement("resource.k8s.io/v1beta1=true"))
		g.Expect(config["admission"]).To(HaveKeyWithValue("pluginConfig", HaveKeyWithValue("PodSecurity", HaveKeyWithValue("configuration", HaveKeyWithValue("defaults", HaveKeyWithValue("enforce", "restricted"))))))
		g.Expect(config).To(HaveKey("authConfig"))
	})
	t.Run("When users come from an OIDC provider OpenShift's own should be unknown", func(t *testing.T) {
		g := NewWithT(t)
		config := configOf(t, contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{
				Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{{Name: "p"}},
			}}
		}))
		args := config["apiServerArguments"].(map[string]any)
		g.Expect(args).To(HaveKey("authentication-config"))
		g.Expect(args).NotTo(HaveKey("authentication-token-webhook-config-file"))
		g.Expect(args["disable-admission-plugins"]).To(HaveLen(2))
		g.Expect(config).NotTo(HaveKey("authConfig"))
	})
	t.Run("When the gates are not known yet the component should wait", func(t *testing.T) {
		ctx := contextOf(t, nil)
		ctx.HCP.Namespace = "elsewhere"
		NewWithT(t).Expect(adaptConfig(ctx, &corev1.ConfigMap{})).To(MatchError(ContainSubstring("featuregate-generator")))
	})
}

func TestAuditLogsThatOutliveTheirPods(t *testing.T) {
	g := NewWithT(t)
	args := configOf(t, contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Annotations = map[string]string{auditlogs.SettingsAnnotation: auditlogs.Settings{Size: "5Gi", MaxSize: 200, MaxBackup: 11}.Encode()}
	}))["apiServerArguments"].(map[string]any)
	g.Expect(args["audit-log-maxsize"]).To(Equal([]any{"200"}))
	g.Expect(args["audit-log-maxbackup"]).To(Equal([]any{"11"}))
}

func TestKMS(t *testing.T) {
	encrypted := func(kms *hyperv1.KMSSpec) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AzurePlatform, Azure: &hyperv1.AzurePlatformSpec{}}
			hcp.Spec.Platform.Azure.AzureAuthenticationConfig.AzureAuthenticationConfigType = hyperv1.AzureAuthenticationTypeManagedIdentities
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: kms}
		}
	}
	t.Run("When there is a backup key both plugins should run, and the active key write", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, encrypted(&hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: "a"}, BackupKey: &hyperv1.AWSKMSKeyEntry{ARN: "b"}}}))
		config, err := nextConfig(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		raw := config.raw
		g.Expect(strings.Index(string(raw), awsActiveSocket)).To(BeNumerically("<", strings.Index(string(raw), awsBackupSocket)))
		pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: Name, LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: httpGet("livez?exclude=etcd", 1, "HTTPS")}}}}}
		g.Expect(addKMS(ctx, pod, kmsOf(ctx.HCP), config.plugins)).To(Succeed())
		g.Expect(component.Container(pod, Name).LivenessProbe.HTTPGet.Path).To(Equal("livez?exclude=etcd&exclude=kms-providers&exclude=kms-provider-0&exclude=kms-provider-1"))
		g.Expect(component.Container(pod, "aws-kms-backup")).NotTo(BeNil())
	})
	t.Run("When a server starts its plugins should have to answer before it gets ready, and never again", func(t *testing.T) {
		for name, kms := range map[string]*hyperv1.KMSSpec{
			"AWS":   {Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: "a"}}},
			"Azure": {Provider: hyperv1.Azure, Azure: &hyperv1.AzureKMSSpec{ActiveKey: hyperv1.AzureKMSKey{KeyVaultName: "v"}}},
			"IBM":   {Provider: hyperv1.IBMCloud, IBMCloud: &hyperv1.IBMCloudKMSSpec{}},
		} {
			g := NewWithT(t)
			ctx := contextOf(t, encrypted(kms))
			ctx.HCP.Annotations = map[string]string{hyperv1.IBMCloudKMSProviderImage: "example.com/kms"}
			config, err := nextConfig(ctx)
			g.Expect(err).NotTo(HaveOccurred(), name)
			ready := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: httpGet("readyz", 1, "HTTPS")}, PeriodSeconds: 10}
			pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: Name, ReadinessProbe: ready}}}
			g.Expect(addKMS(ctx, pod, kmsOf(ctx.HCP), config.plugins)).To(Succeed(), name)
			main := component.Container(pod, Name)
			g.Expect(main.StartupProbe).NotTo(BeNil(), name)
			g.Expect(main.StartupProbe.HTTPGet).To(Equal(httpGet("readyz", 1, "HTTPS")), name)
			g.Expect(main.StartupProbe.TimeoutSeconds).To(BeNumerically(">", kmsTimeout.Seconds()), name)
			g.Expect(main.ReadinessProbe.HTTPGet.Path).To(Equal("readyz?exclude=kms-providers&exclude=kms-provider-0"), name)
		}
	})
	t.Run("When a key that can't be used is taken back the key of before should be the only one", func(t *testing.T) {
		g := NewWithT(t)
		old, bad := hyperv1.AWSKMSKeyEntry{ARN: "arn:aws:kms:::key/a"}, hyperv1.AWSKMSKeyEntry{ARN: "arn:aws:kms:::key/bad"}
		ref := func(key hyperv1.AWSKMSKeyEntry) encryption.Ref {
			return encryption.Ref{Provider: hyperv1.SecretEncryptionProviderAWS, AWS: &key}
		}
		status := hyperv1.SecretEncryptionStatus{ActiveKey: ref(old), TargetKey: ref(bad), History: []hyperv1.EncryptionMigrationHistory{{
			State: hyperv1.EncryptionMigrationReadOnlyDeploy, From: hyperv1.EncryptionKeyReference{Fingerprint: encryption.Fingerprint([]byte(old.ARN))}}}}
		next := func(active hyperv1.AWSKMSKeyEntry, objs ...client.Object) (encryptionConfig, []string) {
			ctx := contextOf(t, encrypted(&hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: active}}), objs...)
			ctx.HCP.Status.SecretEncryption = status
			config, err := nextConfig(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			var arns []string
			for _, key := range config.plugins {
				arns = append(arns, key.Ref.AWS.ARN)
			}
			return config, arns
		}
		config, arns := next(bad)
		g.Expect(arns).To(Equal([]string{old.ARN, bad.ARN}))
		live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: encryption.ConfigSecret, Namespace: "ns"}, Data: map[string][]byte{encryption.ConfigKey: config.raw}}
		asleep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: "ns"}}
		asleep.Spec.Replicas, asleep.Spec.Template.Annotations = ptr.To[int32](0), map[string]string{encryption.HashAnnotation: encryption.ConfigHash(config.raw)}
		_, arns = next(bad, live, asleep)
		g.Expect(arns).To(Equal([]string{old.ARN, bad.ARN}), "no server has shown that it can use the key")
		_, arns = next(old, live, asleep)
		g.Expect(arns).To(Equal([]string{old.ARN}), "nobody else may say that it is given up while no server runs")
		status.History[0].State = hyperv1.EncryptionMigrationInterrupted
		_, arns = next(old, live)
		g.Expect(arns).To(Equal([]string{old.ARN}))
	})
	t.Run("When the key is to change the old one should write until every server has the new one", func(t *testing.T) {
		g := NewWithT(t)
		old, next := hyperv1.AWSKMSKeyEntry{ARN: "arn:aws:kms:::key/a"}, hyperv1.AWSKMSKeyEntry{ARN: "arn:aws:kms:::key/b"}
		first := contextOf(t, encrypted(&hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: old}}))
		before, err := nextConfig(first)
		g.Expect(err).NotTo(HaveOccurred())
		live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: encryption.ConfigSecret, Namespace: "ns"}, Data: map[string][]byte{encryption.ConfigKey: before.raw}}
		changed := func(status hyperv1.SecretEncryptionStatus) (arns []string) {
			ctx := contextOf(t, encrypted(&hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: next}}), live)
			ctx.HCP.Status.SecretEncryption = status
			config, err := nextConfig(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: Name}}}
			g.Expect(addKMS(ctx, pod, kmsOf(ctx.HCP), config.plugins)).To(Succeed())
			for _, name := range []string{"aws-kms-active", "aws-kms-backup"} {
				if c := component.Container(pod, name); c != nil {
					arns = append(arns, strings.TrimPrefix(c.Args[0], "--key="))
				}
			}
			return arns
		}
		ref := func(key hyperv1.AWSKMSKeyEntry) encryption.Ref {
			return encryption.Ref{Provider: hyperv1.SecretEncryptionProviderAWS, AWS: &key}
		}
		g.Expect(changed(hyperv1.SecretEncryptionStatus{ActiveKey: ref(old)})).To(Equal([]string{old.ARN}), "before anybody has said that it changes")
		g.Expect(changed(hyperv1.SecretEncryptionStatus{ActiveKey: ref(old), TargetKey: ref(next)})).To(Equal([]string{old.ARN, next.ARN}))

		// A cluster of before there was a status, whose old key nobody names any more.
		ctx := contextOf(t, encrypted(&hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{ActiveKey: next}}), live)
		_, err = nextConfig(ctx)
		g.Expect(err).To(MatchError(ContainSubstring("into backupKey of spec.secretEncryption.kms")))
	})
	t.Run("When the vault is private the router should be its address", func(t *testing.T) {
		g := NewWithT(t)
		router := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "private-router", Namespace: "ns"}, Spec: corev1.ServiceSpec{ClusterIP: "172.30.0.9"}}
		ctx := contextOf(t, encrypted(&hyperv1.KMSSpec{Provider: hyperv1.Azure, Azure: &hyperv1.AzureKMSSpec{
			ActiveKey: hyperv1.AzureKMSKey{KeyVaultName: "v"}, KeyVaultAccess: hyperv1.AzureKeyVaultPrivate,
		}}), router)
		pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: Name}}}
		g.Expect(addKMS(ctx, pod, kmsOf(ctx.HCP), nil)).To(Succeed())
		g.Expect(pod.HostAliases).To(Equal([]corev1.HostAlias{{IP: "172.30.0.9", Hostnames: []string{"v.vault.azure.net"}}}))
	})
	for name, tc := range map[string]struct {
		kms  *hyperv1.KMSSpec
		says string
	}{
		"has no section":            {nil, "spec.secretEncryption.kms is missing"},
		"has that of another cloud": {&hyperv1.KMSSpec{Provider: hyperv1.AWS, Azure: &hyperv1.AzureKMSSpec{}}, "spec.secretEncryption.kms.provider"},
	} {
		t.Run("When the KMS "+name+" it should be said", func(t *testing.T) {
			_, err := nextConfig(contextOf(t, encrypted(tc.kms)))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}
