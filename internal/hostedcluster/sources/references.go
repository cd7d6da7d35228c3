package sources

import (
	"cmp"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Kind is one of the two kinds that a HostedCluster mentions.
type Kind string

const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// GVK is what the API server calls it.
func (k Kind) GVK() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(string(k)) }

// copyOf is the annotation on copies of the user's objects in control-plane namespaces, with the name of the source. Only objects with it are
// deleted when nothing refers to the source any more.
const copyOf = "hypershift.openshift.io/copy-of"

// Keys of copies in the control-plane namespace, and of their sources.
const (
	auditWebhookKey    = "webhook-kubeconfig"
	tokenWebhookKey    = "kubeConfig"
	signingPrivateKey  = "service-account.key"
	signingPublicKey   = "service-account.pub"
	sourceSigningKey   = "key"
	sourceOldPublicKey = "old-key.pub"
)

// What references are for. They are named in errors and in condition ReconciliationSucceeded.
const (
	PullSecret    = "PullSecretSync"
	encryption    = "SecretEncryptionSync"
	auditWebhook  = "AuditWebhookSync"
	sshKey        = "SSHKeySync"
	TrustBundle   = "AdditionalTrustBundle"
	proxy         = "ProxyTrustBundle"
	SigningKey    = "ServiceAccountSigningKey"
	UnmanagedEtcd = "UnmanagedEtcdMTLS"
	globalConfig  = "GlobalConfigSync"
)

// Reference is one mention of a Secret or ConfigMap in a HostedCluster, and what is made of it in the control-plane namespace.
type Reference struct {
	Kind  Kind
	Name  string
	Field string   // where the spec mentions it, for messages
	keys  []string // that it must have
	// kubeconfig, if set, is the key of a kubeconfig that kube-apiserver reads.
	kubeconfig string
	// Purpose names the step of a pass that copies it.
	Purpose string
	// critical: without the copy a pass goes no further.
	Critical bool
	// target is the name of the copy; empty means that none is made.
	target string
	// only, if set, are the keys that go into the copy; else all go.
	only []string
	// convert makes the data of the copy instead.
	convert func(data map[string][]byte) (map[string][]byte, error)
	// mirrorMeta copies labels and annotations, too.
	mirrorMeta bool
	// ownName: the copy has the name that the user gave, which must not be that of an object of ours.
	ownName bool
	// secretType is that of the copy, whatever the source's is; empty: Opaque.
	secretType corev1.SecretType
}

// Key identifies the object that is mentioned; several references may share it.
type Key struct {
	Kind Kind
	Name string
}

// Key is that of the object that is mentioned.
func (r Reference) Key() Key { return Key{r.Kind, r.Name} }

// Object is an object that was read, or why not.
type Object struct {
	Data        map[string][]byte
	labels      map[string]string
	annotations map[string]string
	uid         types.UID
	owners      sets.Set[types.UID] // of a Secret
	Missing     bool
}

// Set is every object that a spec mentions.
type Set map[Key]Object

// Secret is a Secret of the set; one that is not in it has no data, and is not missing.
func (s Set) Secret(name string) Object { return s[Key{Secret, name}] }

// ConfigMap is a ConfigMap of the set; one that is not in it has no data, and is not missing.
func (s Set) ConfigMap(name string) Object { return s[Key{ConfigMap, name}] }

// PullSecret gives the content of the pull secret, and why there is none.
func (s Set) PullSecret(hc *hyperv1.HostedCluster) ([]byte, error) {
	ref, found := Find(&hc.Spec, PullSecret)
	if !found {
		return nil, errors.New("spec.pullSecret.name is empty: name a Secret of type kubernetes.io/dockerconfigjson")
	}
	return s[ref.Key()].Data[names.DockerConfigKey], ref.Check(hc.Namespace, s)
}

// TrustBundle are the authorities, in PEM, that spec.additionalTrustBundle names; nil: none, or they can't be had, which a condition says.
func (s Set) TrustBundle(spec *hyperv1.HostedClusterSpec) []byte {
	ref, found := Find(spec, TrustBundle)
	if !found {
		return nil
	}
	return s[ref.Key()].Data[names.CABundleKey]
}

// Find is the first reference with the purpose.
func Find(spec *hyperv1.HostedClusterSpec, purpose string) (Reference, bool) {
	for _, ref := range References(spec) {
		if ref.Purpose == purpose {
			return ref, true
		}
	}
	return Reference{}, false
}

// References lists every object that spec mentions and a control plane of these platforms needs. A name that is empty is not a mention.
func References(spec *hyperv1.HostedClusterSpec) []Reference {
	refs := []Reference{
		{Kind: Secret, Name: spec.PullSecret.Name, Field: "spec.pullSecret", keys: []string{names.DockerConfigKey}, Purpose: PullSecret, Critical: true,
			target: names.PullSecret, only: []string{names.DockerConfigKey}, secretType: corev1.SecretTypeDockerConfigJson},
		{Kind: Secret, Name: spec.SSHKey.Name, Field: "spec.sshKey", keys: []string{names.SSHPublicKey}, Purpose: sshKey, target: names.SSHKey, only: []string{names.SSHPublicKey}},
	}
	refs = append(refs, encryptionReferences(spec.SecretEncryption)...)
	if r := spec.AuditWebhook; r != nil {
		refs = append(refs, Reference{Kind: Secret, Name: r.Name, Field: "spec.auditWebhook", keys: []string{auditWebhookKey},
			kubeconfig: auditWebhookKey, Purpose: auditWebhook, target: r.Name, ownName: true})
	}
	if r := spec.AdditionalTrustBundle; r != nil {
		refs = append(refs, Reference{Kind: ConfigMap, Name: r.Name, Field: "spec.additionalTrustBundle", keys: []string{names.CABundleKey},
			Purpose: TrustBundle, target: names.UserCABundle, only: []string{names.CABundleKey}})
	} else if ca := ProxyCA(spec); ca != "" {
		refs = append(refs, Reference{Kind: ConfigMap, Name: ca, Field: "spec.configuration.proxy.trustedCA", keys: []string{names.CABundleKey},
			Purpose: proxy, target: names.UserCABundle, only: []string{names.CABundleKey}})
	}
	if r := spec.ServiceAccountSigningKey; r != nil {
		refs = append(refs, Reference{Kind: Secret, Name: r.Name, Field: "spec.serviceAccountSigningKey", keys: []string{sourceSigningKey},
			Purpose: SigningKey, target: names.ServiceAccountKey, convert: signingKeyPair})
	}
	if e := spec.Etcd; e.ManagementType == hyperv1.Unmanaged && e.Unmanaged != nil {
		refs = append(refs, Reference{Kind: Secret, Name: e.Unmanaged.TLS.ClientSecret.Name, Field: "spec.etcd.unmanaged.tls.clientSecret",
			keys: EtcdClientKeys, Purpose: UnmanagedEtcd, target: e.Unmanaged.TLS.ClientSecret.Name, only: EtcdClientKeys, ownName: true})
	}
	refs = append(refs, configurationReferences(spec.Configuration)...)
	var named []Reference
	for _, r := range refs {
		if r.Name != "" {
			named = append(named, r)
		}
	}
	return named
}

// EtcdClientKeys are what a Secret for a user's own etcd holds.
var EtcdClientKeys = []string{"etcd-client.crt", "etcd-client.key", "etcd-client-ca.crt"}

func encryptionReferences(e *hyperv1.SecretEncryptionSpec) []Reference {
	if e == nil || e.Type != hyperv1.AESCBC || e.AESCBC == nil {
		return nil
	}
	key := func(name, field string) Reference {
		return Reference{Kind: Secret, Name: name, Field: field, keys: []string{hyperv1.AESCBCKeySecretKey}, Purpose: encryption,
			Critical: true, target: name, only: []string{hyperv1.AESCBCKeySecretKey}, ownName: true}
	}
	refs := []Reference{key(e.AESCBC.ActiveKey.Name, "spec.secretEncryption.aescbc.activeKey")}
	if e.AESCBC.BackupKey != nil {
		refs = append(refs, key(e.AESCBC.BackupKey.Name, "spec.secretEncryption.aescbc.backupKey"))
	}
	return refs
}

// ProxyCA is the ConfigMap with the authorities of the proxy; empty: none. Machines get them with the trust bundle.
func ProxyCA(spec *hyperv1.HostedClusterSpec) string {
	if spec.Configuration == nil || spec.Configuration.Proxy == nil {
		return ""
	}
	return spec.Configuration.Proxy.TrustedCA.Name
}

// configurationReferences are mirrored under their own names, with labels and annotations. They are found by their types, so that a field
// that the API gains is copied without a change here.
func configurationReferences(c *hyperv1.ClusterConfiguration) []Reference {
	if c == nil {
		return nil
	}
	var refs []Reference
	collectReferences(reflect.ValueOf(c).Elem(), "spec.configuration", &refs)
	for i := range refs {
		if refs[i].Field == tokenWebhookField {
			refs[i].kubeconfig = tokenWebhookKey
		}
	}
	return refs
}

// notMirrored are fields whose objects live in the hosted cluster.
var notMirrored = sets.New("spec.configuration.ingress.componentRoutes")

func collectReferences(v reflect.Value, path string, refs *[]Reference) {
	mirror := func(k Kind, name string) {
		*refs = append(*refs, Reference{Kind: k, Name: name, Field: path, Purpose: globalConfig, target: name, mirrorMeta: true})
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
			mirror(Secret, r.Name)
			return
		case configv1.ConfigMapNameReference:
			mirror(ConfigMap, r.Name)
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

// missingKeys lists the keys that the source lacks.
func (r Reference) missingKeys(s Object) []string {
	var missing []string
	for _, k := range r.keys {
		if len(s.Data[k]) == 0 {
			missing = append(missing, k)
		}
	}
	return missing
}

// Check says why the reference can't be copied, nil when it can. ns is the namespace of the HostedCluster.
func (r Reference) Check(ns string, set Set) error {
	s := set[r.Key()]
	if s.Missing {
		return fmt.Errorf("%s names %s %s/%s, which does not exist: create it, or name another", r.Field, r.Kind, ns, r.Name)
	}
	if missing := r.missingKeys(s); len(missing) > 0 {
		return fmt.Errorf("%s: %s %s/%s has no key %q: add it", r.Field, r.Kind, ns, r.Name, strings.Join(missing, `", "`))
	}
	var err error
	if r.convert != nil {
		_, err = r.convert(s.Data)
	}
	if raw, ok := s.Data[r.kubeconfig]; ok && r.kubeconfig != "" {
		err = checkKubeconfig(r.kubeconfig, raw)
	}
	if err != nil {
		return fmt.Errorf("%s: %s %s/%s: %w", r.Field, r.Kind, ns, r.Name, err)
	}
	return nil
}

// Copy renders the copy; Check has passed. It can always follow the source, which the user may make anew: neither is it immutable, nor has it the source's type,
// which can't be changed.
func (r Reference) Copy(hcpNamespace string, set Set) (client.Object, error) {
	s := set[r.Key()]
	meta := metav1.ObjectMeta{Namespace: hcpNamespace, Name: r.target}
	if r.mirrorMeta {
		meta.Labels, meta.Annotations = maps.Clone(s.labels), mirroredAnnotations(s.annotations)
	}
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[copyOf] = r.Name
	data := s.Data
	switch {
	case r.convert != nil:
		var err error
		if data, err = r.convert(s.Data); err != nil {
			return nil, err
		}
	case r.only != nil:
		data = map[string][]byte{}
		for _, k := range r.only {
			if v, ok := s.Data[k]; ok {
				data[k] = v
			}
		}
	}
	if r.Kind == ConfigMap {
		return configMapWith(meta, data), nil
	}
	return &corev1.Secret{ObjectMeta: meta, Type: cmp.Or(r.secretType, corev1.SecretTypeOpaque), Data: data}, nil
}

func configMapWith(meta metav1.ObjectMeta, data map[string][]byte) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}}
	for k, v := range data {
		cm.Data[k] = string(v)
	}
	return cm
}

// mirroredAnnotations leaves out what is about the source and not its content: back references, and what kubectl keeps, which holds data.
func mirroredAnnotations(from map[string]string) map[string]string {
	kept := map[string]string{}
	for k, v := range from {
		if strings.HasPrefix(k, hyperv1.ReferencedResourceAnnotationPrefix) || k == corev1.LastAppliedConfigAnnotation || k == copyOf || k == hyperv1.DesiredStateHashAnnotation {
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
