package hostedcluster

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

type kind string

const (
	secretKind    kind = "Secret"
	configMapKind kind = "ConfigMap"
)

// reference is one mention of a Secret or ConfigMap in a HostedCluster, and what is made of it in the control-plane namespace.
type reference struct {
	kind  kind
	name  string
	field string   // where the spec mentions it, for messages
	keys  []string // that it must have
	step  string   // the step that copies it
	class class
	// target is the name of the copy; empty means that none is made.
	target string
	// only, if set, are the keys that go into the copy; else all go.
	only []string
	// convert makes the data of the copy instead.
	convert func(data map[string][]byte) (map[string][]byte, error)
	// mirrorMeta copies labels and annotations, too.
	mirrorMeta bool
	// ownName: the copy has the name that the user gave, which must not be that of an object of ours.
	ownName    bool
	secretType corev1.SecretType
}

// key identifies the object that is mentioned; several references may share it.
type sourceKey struct {
	kind kind
	name string
}

func (r reference) key() sourceKey { return sourceKey{r.kind, r.name} }

// sourceObject is an object that was read, or why not.
type sourceObject struct {
	data        map[string][]byte
	labels      map[string]string
	annotations map[string]string
	secretType  corev1.SecretType
	immutable   *bool
	uid         types.UID
	owners      sets.Set[types.UID] // of a Secret
	missing     bool
}

// references lists every object that spec mentions and a control plane of these platforms needs. A name that is empty is not a mention.
func references(spec *hyperv1.HostedClusterSpec) []reference {
	refs := []reference{
		{kind: secretKind, name: spec.PullSecret.Name, field: "spec.pullSecret", keys: []string{names.DockerConfigKey}, step: stepPullSecret, class: critical,
			target: names.PullSecret, only: []string{names.DockerConfigKey}, secretType: corev1.SecretTypeDockerConfigJson},
		{kind: secretKind, name: spec.SSHKey.Name, field: "spec.sshKey", keys: []string{names.SSHPublicKey}, step: stepSSHKey, class: supporting,
			target: names.SSHKey, only: []string{names.SSHPublicKey}},
	}
	refs = append(refs, encryptionReferences(spec.SecretEncryption)...)
	if r := spec.AuditWebhook; r != nil {
		refs = append(refs, reference{kind: secretKind, name: r.Name, field: "spec.auditWebhook", keys: []string{auditWebhookKey},
			step: stepAuditWebhook, class: supporting, target: r.Name, ownName: true})
	}
	if r := spec.AdditionalTrustBundle; r != nil {
		refs = append(refs, reference{kind: configMapKind, name: r.Name, field: "spec.additionalTrustBundle", keys: []string{names.CABundleKey},
			step: stepTrustBundle, class: supporting, target: names.UserCABundle, only: []string{names.CABundleKey}})
	} else if ca := proxyCA(spec); ca != "" {
		refs = append(refs, reference{kind: configMapKind, name: ca, field: "spec.configuration.proxy.trustedCA", keys: []string{names.CABundleKey},
			step: stepProxyCA, class: supporting, target: names.UserCABundle, only: []string{names.CABundleKey}})
	}
	if r := spec.ServiceAccountSigningKey; r != nil {
		refs = append(refs, reference{kind: secretKind, name: r.Name, field: "spec.serviceAccountSigningKey", keys: []string{sourceSigningKey},
			step: stepSigningKey, class: supporting, target: names.ServiceAccountKey, convert: signingKeyPair})
	}
	if e := spec.Etcd; e.ManagementType == hyperv1.Unmanaged && e.Unmanaged != nil {
		refs = append(refs, reference{kind: secretKind, name: e.Unmanaged.TLS.ClientSecret.Name, field: "spec.etcd.unmanaged.tls.clientSecret",
			keys: etcdClientKeys, step: stepUnmanagedEtcd, class: supporting, target: e.Unmanaged.TLS.ClientSecret.Name, only: etcdClientKeys, ownName: true})
	}
	refs = append(refs, configurationReferences(spec.Configuration)...)
	var named []reference
	for _, r := range refs {
		if r.name != "" {
			named = append(named, r)
		}
	}
	return named
}

// etcdClientKeys are what a Secret for a user's own etcd holds.
var etcdClientKeys = []string{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}

func encryptionReferences(e *hyperv1.SecretEncryptionSpec) []reference {
	if e == nil || e.Type != hyperv1.AESCBC || e.AESCBC == nil {
		return nil
	}
	key := func(name, field string) reference {
		return reference{kind: secretKind, name: name, field: field, keys: []string{hyperv1.AESCBCKeySecretKey}, step: stepEncryption,
			class: critical, target: name, only: []string{hyperv1.AESCBCKeySecretKey}, ownName: true}
	}
	refs := []reference{key(e.AESCBC.ActiveKey.Name, "spec.secretEncryption.aescbc.activeKey")}
	if e.AESCBC.BackupKey != nil {
		refs = append(refs, key(e.AESCBC.BackupKey.Name, "spec.secretEncryption.aescbc.backupKey"))
	}
	return refs
}

// proxyCA is the ConfigMap with the authorities of the proxy; empty: none. Machines get them with the trust bundle.
func proxyCA(spec *hyperv1.HostedClusterSpec) string {
	if spec.Configuration == nil || spec.Configuration.Proxy == nil {
		return ""
	}
	return spec.Configuration.Proxy.TrustedCA.Name
}

// configurationReferences are mirrored under their own names, with labels and annotations. They are found by their types, so that a field
// that the API gains is copied without a change here.
func configurationReferences(c *hyperv1.ClusterConfiguration) []reference {
	if c == nil {
		return nil
	}
	var refs []reference
	collectReferences(reflect.ValueOf(c).Elem(), "spec.configuration", &refs)
	return refs
}

// notMirrored are fields whose objects live in the hosted cluster.
var notMirrored = sets.New("spec.configuration.ingress.componentRoutes")

func collectReferences(v reflect.Value, path string, refs *[]reference) {
	mirror := func(k kind, name string) {
		*refs = append(*refs, reference{kind: k, name: name, field: path, step: stepGlobalConfig, class: supporting, target: name, mirrorMeta: true})
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectReferences(v.Elem(), path, refs)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectReferences(v.Index(i), fmt.Sprintf("%s[%d]", path, i), refs)
		}
	case reflect.Struct:
		switch r := v.Interface().(type) {
		case configv1.SecretNameReference:
			mirror(secretKind, r.Name)
			return
		case configv1.ConfigMapNameReference:
			mirror(configMapKind, r.Name)
			return
		}
		for i := range v.NumField() {
			name, inline := jsonName(v.Type().Field(i))
			child := path
			if !inline {
				child += "." + name
			}
			if v.Type().Field(i).IsExported() && !notMirrored.Has(child) {
				collectReferences(v.Field(i), child, refs)
			}
		}
	}
}

// jsonName is the name of a field on the wire, and whether it is inlined.
func jsonName(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name == "" && (f.Anonymous || strings.Contains(options, "inline"))
}

// reserved are names that a mirrored object must not take: it would replace keys and certificates of the control plane itself.
var reserved = sets.New(names.PullSecret, names.SSHKey, names.ServiceAccountKey, names.UserCABundle, "admin-kubeconfig", "localhost-kubeconfig", "bootstrap-kubeconfig",
	"service-network-admin-kubeconfig", "kubeadmin-password", "auth-config", "kas-config", "kas-secret-encryption-config-file",
	pki.RootCA, pki.ClusterSigner, pki.EtcdSigner, pki.EtcdMetricsSigner, pki.AggregatorSigner, pki.ControlPlaneSigner, pki.KubeletSigner,
	pki.SystemAdminSigner, pki.HCCOSigner, pki.KASBootstrapSigner, pki.KonnectivitySigner,
	pki.KASServer, pki.KASServerPrivate, pki.KASKubeletClient, pki.KASAggregatorClient, pki.SchedulerClient, pki.KCMClient, pki.SystemAdminClient,
	pki.HCCOClient, pki.KASBootstrapClient, pki.NodeBootstrapClient, pki.MetricsClient, pki.EtcdClient, pki.EtcdServer, pki.EtcdPeer,
	pki.EtcdMetricsClient, pki.KonnectivityServer, pki.KonnectivityCluster, pki.KonnectivityClient, pki.KonnectivityAgent, pki.KCMServer, pki.SchedulerServer,
	pki.EtcdCABundle, pki.EtcdMetricsCABundle, pki.AggregatorCABundle, pki.ClientCABundle, pki.KubeletCABundle, pki.KonnectivityCABundle)

// missingKeys lists the keys that the source lacks.
func (r reference) missingKeys(s sourceObject) []string {
	var missing []string
	for _, k := range r.keys {
		if len(s.data[k]) == 0 {
			missing = append(missing, k)
		}
	}
	return missing
}

// check says why the reference can't be copied, nil when it can. ns is the namespace of the HostedCluster.
func (r reference) check(ns string, s sourceObject) error {
	if s.missing {
		return fmt.Errorf("%s names %s %s/%s, which does not exist: create it, or name another", r.field, r.kind, ns, r.name)
	}
	if missing := r.missingKeys(s); len(missing) > 0 {
		return fmt.Errorf("%s: %s %s/%s has no key %q: add it", r.field, r.kind, ns, r.name, strings.Join(missing, `", "`))
	}
	if r.convert != nil {
		if _, err := r.convert(s.data); err != nil {
			return fmt.Errorf("%s: %s %s/%s: %w", r.field, r.kind, ns, r.name, err)
		}
	}
	return nil
}

// copyOf renders the copy; check has passed.
func (r reference) copyOf(hcpNamespace string, s sourceObject) (client.Object, error) {
	meta := metav1.ObjectMeta{Namespace: hcpNamespace, Name: r.target}
	var immutable *bool
	if r.mirrorMeta {
		meta.Labels, meta.Annotations, immutable = maps.Clone(s.labels), mirroredAnnotations(s.annotations), s.immutable
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[copyOfAnnotation] = r.name
	data := s.data
	switch {
	case r.convert != nil:
		var err error
		if data, err = r.convert(s.data); err != nil {
			return nil, err
		}
	case r.only != nil:
		data = map[string][]byte{}
		for _, k := range r.only {
			if v, ok := s.data[k]; ok {
				data[k] = v
			}
		}
	}
	if r.kind == configMapKind {
		return configMapWith(meta, data, immutable), nil
	}
	secretType := r.secretType
	if secretType == "" {
		secretType = s.secretType
	}
	if secretType == "" || r.convert != nil || secretType == corev1.SecretTypeServiceAccountToken {
		secretType = corev1.SecretTypeOpaque
	}
	return &corev1.Secret{ObjectMeta: meta, Type: secretType, Data: data, Immutable: immutable}, nil
}

func configMapWith(meta metav1.ObjectMeta, data map[string][]byte, immutable *bool) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: meta, Immutable: immutable, Data: map[string]string{}}
	for k, v := range data {
		cm.Data[k] = string(v)
	}
	return cm
}

// mirroredAnnotations leaves out what is about the source and not its content: back references, and what kubectl keeps, which holds data.
func mirroredAnnotations(from map[string]string) map[string]string {
	kept := map[string]string{}
	for k, v := range from {
		if strings.HasPrefix(k, hyperv1.ReferencedResourceAnnotationPrefix) || k == corev1.LastAppliedConfigAnnotation || k == copyOfAnnotation || k == hyperv1.DesiredStateHashAnnotation {
			continue
		}
		kept[k] = v
	}
	return kept
}

// signingKeyPair turns a user's service account signing key into the pair that kube-apiserver and kube-controller-manager read: the private
// key as it is, and its public key with the old one behind it, so that tokens of the old key stay good.
func signingKeyPair(data map[string][]byte) (map[string][]byte, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(data[sourceSigningKey])
	if err != nil {
		return nil, fmt.Errorf("key %q does not hold a private key in PEM form", sourceSigningKey)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("key %q holds a private key of an unknown type: use RSA or ECDSA", sourceSigningKey)
	}
	public, err := publicKeyPEM(signer.Public())
	if err != nil {
		return nil, err
	}
	if old := data[sourceOldPublicKey]; len(old) > 0 {
		if _, err := keyutil.ParsePublicKeysPEM(old); err != nil {
			return nil, fmt.Errorf("key %q does not hold public keys in PEM form", sourceOldPublicKey)
		}
		public = append(public, old...)
	}
	return map[string][]byte{signingPrivateKey: data[sourceSigningKey], signingPublicKey: public}, nil
}

func publicKeyPEM(public crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("key %q holds a private key of an unknown type: use RSA or ECDSA", sourceSigningKey)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
