package kubeapiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func contextOf(t *testing.T, hcp *hyperv1.HostedControlPlane, objs ...client.Object) component.WorkloadContext {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	hcp.Namespace = "ns"
	return component.WorkloadContext{Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()}
}

func TestAuthentication(t *testing.T) {
	provider := func(mutate func(*configv1.OIDCProvider)) *hyperv1.HostedControlPlane {
		p := configv1.OIDCProvider{Name: "corp", Issuer: configv1.TokenIssuer{URL: "https://issuer", Audiences: []configv1.TokenAudience{"a", "b"}}}
		p.ClaimMappings.Username.Claim = "sub"
		if mutate != nil {
			mutate(&p)
		}
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{p}}}
		return hcp
	}
	username := func(f func(*configv1.UsernameClaimMapping)) func(*configv1.OIDCProvider) {
		return func(p *configv1.OIDCProvider) { f(&p.ClaimMappings.Username) }
	}
	for name, tc := range map[string]struct {
		provider func(*configv1.OIDCProvider)
		prefix   *string
		err      string
	}{
		"When nothing is said users should be told apart by their issuer": {prefix: ptr.To("https://issuer#")},
		"When users are e-mail addresses they should need no prefix":      {provider: username(func(u *configv1.UsernameClaimMapping) { u.Claim = "email" }), prefix: ptr.To("")},
		"When no prefix is wanted there should be none":                   {provider: username(func(u *configv1.UsernameClaimMapping) { u.PrefixPolicy = configv1.NoPrefix }), prefix: ptr.To("")},
		"When a prefix is given it should be that": {provider: username(func(u *configv1.UsernameClaimMapping) {
			u.PrefixPolicy, u.Prefix = configv1.Prefix, &configv1.UsernamePrefix{PrefixString: "corp:"}
		}), prefix: ptr.To("corp:")},
		"When users are computed there should be no prefix":         {provider: username(func(u *configv1.UsernameClaimMapping) { u.Claim, u.Expression = "", "claims.sub" })},
		"When the issuer is the cluster's own it should be refused": {provider: func(p *configv1.OIDCProvider) { p.Issuer.URL = "https://kubernetes.default.svc" }, err: "own ServiceAccounts"},
		"When its CA is not there it should say which ConfigMap":    {provider: func(p *configv1.OIDCProvider) { p.Issuer.CertificateAuthority.Name = "ca" }, err: `OIDC provider "corp": reading its certificate authority, ConfigMap ca`},
		"When its CA lacks the key it should say which":             {provider: func(p *configv1.OIDCProvider) { p.Issuer.CertificateAuthority.Name = "empty" }, err: "has no key ca-bundle.crt"},
		"When a rule has no content it should be refused": {provider: func(p *configv1.OIDCProvider) {
			p.ClaimValidationRules = []configv1.TokenClaimValidationRule{{Type: "CEL"}}
		}, err: "has no content"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "empty"}}
			cm := &corev1.ConfigMap{}
			err := adaptAuthentication(contextOf(t, provider(tc.provider), empty), cm)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			var config apiserverv1.AuthenticationConfiguration
			g.Expect(json.Unmarshal([]byte(cm.Data[authenticationKey]), &config)).To(Succeed())
			g.Expect(config.JWT[0].Issuer.Audiences).To(Equal([]string{"a", "b"}))
			g.Expect(config.JWT[0].ClaimMappings.Username.Prefix).To(Equal(tc.prefix))
		})
	}
}

func TestEncryptionInput(t *testing.T) {
	secret := func(name string, size int) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"key": make([]byte, size)}}
	}
	hcp := func(f func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
		h := &hyperv1.HostedControlPlane{}
		h.Spec.Platform.Type = hyperv1.NonePlatform
		h.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "k"}}}
		if f != nil {
			f(h)
		}
		return h
	}
	lost := func(h *hyperv1.HostedControlPlane) {
		h.Status.SecretEncryption.ActiveKey.AESCBC = &hyperv1.AESCBCKeyStatus{Secret: hyperv1.EncryptionSecretReference{Name: "k"}, DataHash: encryption.Fingerprint([]byte("gone"))}
	}
	for name, tc := range map[string]struct {
		hcp  *hyperv1.HostedControlPlane
		objs []client.Object
		err  string
	}{
		"When the key is there it should be used":                      {hcp: hcp(nil), objs: []client.Object{secret("k", 32)}},
		"When the key is missing it should say which":                  {hcp: hcp(nil), err: "no usable encryption key: Secret k does not exist"},
		"When the key has the wrong size it should say which is right": {hcp: hcp(nil), objs: []client.Object{secret("k", 31)}, err: `key "key" of Secret k has 31 bytes, and an AES key must have 32`},
		"When it is a KMS it should say what to use instead":           {hcp: hcp(func(h *hyperv1.HostedControlPlane) { h.Spec.SecretEncryption.Type = hyperv1.KMS }), err: "not supported on platform None: use aescbc"},
		"When no key is named it should say where to":                  {hcp: hcp(func(h *hyperv1.HostedControlPlane) { h.Spec.SecretEncryption.AESCBC = nil }), err: "spec.secretEncryption.aescbc is missing"},
		"When the key that data needs is lost it should ask for it":    {hcp: hcp(lost), objs: []client.Object{secret("k", 32)}, err: "put it back"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, err := nextConfig(contextOf(t, tc.hcp, tc.objs...))
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			parsed, err := encryption.ParseKeys(map[string][]byte{encryption.ConfigKey: config.raw})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parsed).To(Equal([]encryption.Key{encryption.NewKey(make([]byte, 32))}))
		})
	}
}

// A cluster that slept while a key was on its way to servers: none of them has shown that it can use it, and nobody but this process can take it away.
func TestKeyThatNeverWrote(t *testing.T) {
	secret := func(name, letter string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"key": bytes.Repeat([]byte(letter), encryption.KeySize)}}
	}
	older, newer := secret("older", "o"), secret("newer", "n")
	keys := []encryption.Key{encryption.NewKey(older.Data["key"]), encryption.NewKey(newer.Data["key"])}
	raw, err := encryption.Config(keys)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	live := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: encryption.ConfigSecret}, Data: map[string][]byte{encryption.ConfigKey: raw}}
	asleep := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: names.KubeAPIServer}}
	asleep.Spec.Replicas, asleep.Spec.Template.Annotations = ptr.To[int32](0), map[string]string{encryption.HashAnnotation: encryption.ConfigHash(raw)}
	for name, tc := range map[string]struct {
		spec string
		objs []client.Object
		want []encryption.Key
	}{
		"When the servers sleep the key should not come to write":    {spec: "newer", objs: []client.Object{newer}, want: keys},
		"When the spec goes back the key should go":                  {spec: "older", objs: []client.Object{newer}, want: keys[:1]},
		"When the key's own Secret is gone, too, the key should go":  {spec: "older", want: keys[:1]},
		"When the spec's Secret holds no key everything should stay": {spec: "third", objs: []client.Object{newer}, want: keys},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: tc.spec}}}
			hcp.Status.SecretEncryption = hyperv1.SecretEncryptionStatus{
				ActiveKey: encryption.AESCBCRef("older", keys[0]), TargetKey: encryption.AESCBCRef("newer", keys[1]),
				History: []hyperv1.EncryptionMigrationHistory{{State: hyperv1.EncryptionMigrationReadOnlyDeploy, From: hyperv1.EncryptionKeyReference{Fingerprint: keys[0].Hash()}}},
			}
			got, _, err := NextKeys(contextOf(t, hcp, append([]client.Object{older, live, asleep}, tc.objs...)...))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestPlugin(t *testing.T) {
	g := NewWithT(t)
	data := bytes.Repeat([]byte("a"), encryption.KeySize)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "k"}, Data: map[string][]byte{"key": data}}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{encryption.PluginAnnotation: encryption.PluginLocal}}}
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "k"}}}
	ctx := contextOf(t, hcp, secret)

	config := &corev1.Secret{}
	g.Expect(adaptEncryptionConfig(ctx, config)).To(Succeed())
	name := encryption.NewKey(data).In(encryption.InPlugin).Name
	g.Expect(config.Data).To(HaveLen(2))
	g.Expect(config.Data).To(HaveKeyWithValue(name+".key", data))

	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path}}}
	}
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: container, StartupProbe: probe("/readyz"), ReadinessProbe: probe("/readyz"), LivenessProbe: probe("/livez?exclude=etcd"),
	}}
	g.Expect(addEncryption(ctx, d)).To(Succeed())
	pod := &d.Spec.Template.Spec
	main, plugin := component.Container(pod, container), component.Container(pod, "kms-plugin")
	g.Expect(plugin).NotTo(BeNil())

	t.Run("When a plugin holds the keys the server should not", func(t *testing.T) {
		g := NewWithT(t)
		for _, v := range pod.Volumes {
			if v.Name == "secret-encryption" {
				g.Expect(v.Secret.Items).To(Equal([]corev1.KeyToPath{{Key: "config.yaml", Path: "config.yaml"}}))
			}
		}
		g.Expect(main.VolumeMounts).To(ConsistOf(
			corev1.VolumeMount{Name: "secret-encryption", MountPath: encryptionDir, ReadOnly: true}, corev1.VolumeMount{Name: "kms-sockets", MountPath: "/var/run/kms"}))
		g.Expect(plugin.VolumeMounts).To(ConsistOf(
			corev1.VolumeMount{Name: "kms-keys", MountPath: "/etc/kms", ReadOnly: true}, corev1.VolumeMount{Name: "kms-sockets", MountPath: "/var/run/kms"}))
	})
	t.Run("When the plugin is away a server that runs should go on, and one that starts should wait", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(main.StartupProbe.HTTPGet.Path).To(Equal("/readyz"))
		g.Expect(main.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz?exclude=kms-providers&exclude=kms-provider-0"))
		g.Expect(main.LivenessProbe.HTTPGet.Path).To(Equal("/livez?exclude=etcd&exclude=kms-providers&exclude=kms-provider-0"))
	})
}

func TestBootstrap(t *testing.T) {
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := env.Client(t, scheme)
	want := clusterAdmin(HCCOClusterAdmin, hccoUser)
	for _, step := range []struct {
		name   string
		before func(g Gomega)
	}{
		{"When the binding is missing it should make it", func(Gomega) {}},
		{"When the binding is right it should leave it", func(Gomega) {}},
		{"When the binding has other subjects it should correct it", func(g Gomega) {
			live := &rbacv1.ClusterRoleBinding{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(want), live)).To(Succeed())
			live.Subjects[0].Name = "somebody"
			g.Expect(c.Update(t.Context(), live)).To(Succeed())
		}},
		{"When the binding has another role it should replace it", func(g Gomega) {
			other := want.DeepCopy()
			other.RoleRef.Name = "view"
			g.Expect(c.Delete(t.Context(), want.DeepCopy())).To(Succeed())
			g.Expect(c.Create(t.Context(), other)).To(Succeed())
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			g := NewWithT(t)
			step.before(g)
			g.Expect(Bootstrap(t.Context(), env.Kubeconfig(t))).To(Succeed())
			live := &rbacv1.ClusterRoleBinding{}
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(want), live)).To(Succeed())
			g.Expect(live.Subjects).To(Equal(want.Subjects))
			g.Expect(live.RoleRef).To(Equal(want.RoleRef))
		})
	}
	t.Run("When the server does not answer it should fail in time", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		NewWithT(t).Expect(Bootstrap(ctx, env.Kubeconfig(t))).To(MatchError(ContainSubstring(HCCOClusterAdmin)))
	})
}

func TestPersistAuditLogs(t *testing.T) {
	pod := func() *corev1.PodSpec {
		return &corev1.PodSpec{
			Containers: []corev1.Container{{Name: container, Args: []string{"--audit-log-maxbackup=1", "--audit-log-maxsize=10", "--v=2"}}},
			Volumes:    []corev1.Volume{{Name: auditlogs.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}
	}
	settings := auditlogs.Settings{Size: "5Gi", StorageClass: "fast", MaxSize: 200, MaxBackup: 10}
	t.Run("When audit logs are to outlive their Pods they should lie on a volume of their own, in larger files", func(t *testing.T) {
		g, hcp, p := NewWithT(t), &hyperv1.HostedControlPlane{}, pod()
		hcp.Annotations = map[string]string{auditlogs.SettingsAnnotation: settings.Encode()}
		g.Expect(persistAuditLogs(hcp, p)).To(Succeed())
		g.Expect(p.Containers[0].Args).To(Equal([]string{"--audit-log-maxbackup=10", "--audit-log-maxsize=200", "--v=2"}), "in their places")
		g.Expect(p.Volumes[0].EmptyDir).To(BeNil())
		g.Expect(p.Volumes[0].Ephemeral.VolumeClaimTemplate.Spec.StorageClassName).To(Equal(ptr.To("fast")))
	})
	t.Run("When nobody asks for it or nothing is audited nothing should change", func(t *testing.T) {
		g, hcp, p := NewWithT(t), &hyperv1.HostedControlPlane{}, pod()
		g.Expect(persistAuditLogs(hcp, p)).To(Succeed())
		hcp.Annotations = map[string]string{auditlogs.SettingsAnnotation: settings.Encode()}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{Audit: configv1.Audit{Profile: configv1.NoneAuditProfileType}}}
		g.Expect(persistAuditLogs(hcp, p)).To(Succeed())
		g.Expect(p).To(Equal(pod()))
	})
	t.Run("When the annotation can't be read it should be named", func(t *testing.T) {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Annotations = map[string]string{auditlogs.SettingsAnnotation: "x"}
		NewWithT(t).Expect(persistAuditLogs(hcp, pod())).To(MatchError(ContainSubstring(auditlogs.SettingsAnnotation)))
	})
}

func TestTokenWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		webhook *configv1.WebhookTokenAuthenticator
		args    []string
	}{
		"When no webhook is named no flag should be set": {},
		"When a webhook is named it should be asked about tokens": {
			webhook: &configv1.WebhookTokenAuthenticator{KubeConfig: configv1.SecretNameReference{Name: "tokens"}},
			args:    []string{"--authentication-token-webhook-config-file=/etc/kubernetes/token-webhook/kubeConfig", "--authentication-token-webhook-version=v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Etcd.ManagementType = hyperv1.Managed
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{WebhookTokenAuthenticator: tc.webhook}}
			ctx := contextOf(t, hcp)
			ctx.Infra.AdvertiseAddress, ctx.Release = "172.20.0.1", &release.Release{}
			args, err := arguments(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			var webhook []string
			for _, arg := range args {
				if strings.HasPrefix(arg, "--authentication-token-webhook") {
					webhook = append(webhook, arg)
				}
			}
			g.Expect(webhook).To(Equal(tc.args))

			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: container, Args: []string{"--service-node-port-range=1-2"}, Ports: make([]corev1.ContainerPort, 1)}}
			g.Expect(adaptDeployment(ctx, d)).To(Succeed())
			mounted := map[string]string{}
			for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
				mounted[m.MountPath] = component.Volume(&d.Spec.Template.Spec, m.Name).Secret.SecretName
			}
			if tc.webhook == nil {
				g.Expect(mounted).NotTo(HaveKey("/etc/kubernetes/token-webhook"))
			} else {
				g.Expect(mounted).To(HaveKeyWithValue("/etc/kubernetes/token-webhook", "tokens"))
			}
		})
	}
}
