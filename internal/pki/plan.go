package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/contract/names"
)

// minRecheck bounds how soon a plan asks to be looked at again.
const minRecheck = time.Minute

// Observed is what exists in the control plane namespace, by name. Only what this package reads needs to be there.
type Observed struct {
	Secrets    map[string]*corev1.Secret
	ConfigMaps map[string]*corev1.ConfigMap
}

// Source is where a plan takes time and chance from.
type Source struct {
	Now  time.Time
	Keys KeySource
	Rand io.Reader
}

// Plan says what to write, in waves: everything of one wave is stored before the next one begins. The zero Plan does nothing.
type Plan struct {
	Authorities []Write
	Leaves      []Write
	Copies      []Write
	// Delete are Secrets that nothing asks for any more. They carry what was read.
	Delete []*corev1.Secret
	// Problems need a person: an authority that cannot be read, an input that is not there. What depends on them is left as it is.
	Problems []error
	// RecheckAfter is when the next leaf is due for renewal, or an authority for its next step. Zero when there is nothing to wait for.
	RecheckAfter time.Duration
	// AwaitsRollout says that the next step of an authority waits for Spec.TrustRolledOut.
	AwaitsRollout bool
}

// Write is a Secret or a ConfigMap to store. It carries the resourceVersion of what was read, and none when there was nothing.
type Write struct {
	Secret    *corev1.Secret
	ConfigMap *corev1.ConfigMap
	// Reason is for logs: a sentence without secrets.
	Reason string
}

// Empty reports whether there is nothing to write.
func (p Plan) Empty() bool { return len(p.Authorities)+len(p.Leaves)+len(p.Copies)+len(p.Delete) == 0 }

// issues reports whether certificates are made.
func (p Plan) issues() bool { return len(p.Authorities)+len(p.Leaves) > 0 }

// PlanFor never replaces a service account key, nor a readable authority but in the two steps of generations, never pairs a certificate with another key, and plans nothing more once its
// writes are stored.
func PlanFor(spec Spec, obs Observed, src Source) Plan {
	if spec.Disabled {
		return Plan{}
	}
	p := &planner{spec: spec, src: src, secrets: maps.Clone(obs.Secrets), configMaps: maps.Clone(obs.ConfigMaps), cas: map[string]pair{}, trusted: map[string][]byte{}}
	if p.secrets == nil {
		p.secrets = map[string]*corev1.Secret{}
	}
	if p.configMaps == nil {
		p.configMaps = map[string]*corev1.ConfigMap{}
	}
	p.planServiceAccountKey()
	for _, a := range spec.authorities() {
		p.planAuthority(a)
	}
	leaves, err := spec.leaves()
	if err != nil {
		p.problem(err)
	}
	for _, l := range leaves {
		p.planLeaf(l)
	}
	p.planBundles()
	p.planNodeTrust()
	for _, k := range spec.kubeconfigs() {
		p.planKubeconfig(k)
	}
	name, _ := spec.AdminKubeconfigRef()
	if stale := p.secrets[CustomAdminKubeconfig]; stale != nil && spec.keepsKubeconfigs() && spec.CustomAPIHost == "" && name != CustomAdminKubeconfig {
		p.plan.Delete = append(p.plan.Delete, stale)
	}
	return p.plan
}

// planner carries the state as it will be once the plan so far is stored.
type planner struct {
	spec       Spec
	src        Source
	secrets    map[string]*corev1.Secret
	configMaps map[string]*corev1.ConfigMap
	cas        map[string]pair
	trusted    map[string][]byte // by Secret of the authority: in PEM, also those before and after it
	plan       Plan
	// awaitsNodes and toldNodes say that an authority which nodes know has a successor, or had one.
	awaitsNodes, toldNodes bool
}

func (p *planner) problem(err error) { p.plan.Problems = append(p.plan.Problems, err) }

// secret gives a copy of the stored Secret to change, or a new one. Unknown data, labels and annotations stay.
func (p *planner) secret(name string) *corev1.Secret {
	var s *corev1.Secret
	if stored := p.secrets[name]; stored != nil {
		s = stored.DeepCopy()
	} else {
		s = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.spec.Namespace, Name: name}, Type: typeOf(name)}
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	own(&s.ObjectMeta, p.spec.Owner)
	return s
}

// typeOf the Secret, when it is made. Those of the ignition server, and of what forwards metrics, have the type that others know them by.
func typeOf(name string) corev1.SecretType {
	switch name {
	case IgnitionCA, IgnitionServing, EndpointResolverCA, EndpointResolverServing, MetricsProxyCA, MetricsProxyServing:
		return corev1.SecretTypeTLS
	}
	return corev1.SecretTypeOpaque
}

// own makes owner one of the object's owners. Another controller's mark stays: two would be refused.
func own(meta *metav1.ObjectMeta, owner metav1.OwnerReference) {
	if owner.UID == "" || slices.ContainsFunc(meta.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		return
	}
	if metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: meta.OwnerReferences}) != nil {
		owner.Controller = nil
	}
	meta.OwnerReferences = append(meta.OwnerReferences, owner)
}

func setAll[V any](into *map[string]V, values map[string]V) {
	if *into == nil && len(values) > 0 {
		*into = map[string]V{}
	}
	maps.Copy(*into, values)
}

// store records a Secret as written.
func (p *planner) store(wave *[]Write, s *corev1.Secret, reason string) {
	p.secrets[s.Name] = s
	*wave = append(*wave, Write{Secret: s, Reason: reason})
}

func (p *planner) planServiceAccountKey() {
	stored := p.secrets[names.ServiceAccountKey]
	switch {
	case stored == nil || len(stored.Data[ServiceAccountPrivateKeyKey]) == 0:
		if p.spec.UserServiceAccountKey {
			p.problem(fmt.Errorf("waiting for secret %s/%s: the HostedCluster provides a service account signing key, which was not copied here yet", p.spec.Namespace, names.ServiceAccountKey))
			return
		}
		key, err := p.src.Keys(RSA)
		if err != nil {
			p.problem(err)
			return
		}
		p.storeServiceAccountKey(key, "there is none yet")
	case len(stored.Data[ServiceAccountPublicKeyKey]) == 0:
		key, err := parseKey(stored.Data[ServiceAccountPrivateKeyKey])
		if err != nil {
			p.problem(fmt.Errorf("reading key %s of secret %s/%s: %w; put a PEM private key there", ServiceAccountPrivateKeyKey, p.spec.Namespace, names.ServiceAccountKey, err))
			return
		}
		p.storeServiceAccountKey(key, "its public half is missing")
	}
}

// storeServiceAccountKey never touches a private key that is there.
func (p *planner) storeServiceAccountKey(key crypto.Signer, reason string) {
	public, err := publicKeyPEM(key)
	if err != nil {
		p.problem(err)
		return
	}
	s := p.secret(names.ServiceAccountKey)
	if len(s.Data[ServiceAccountPrivateKeyKey]) == 0 {
		private, err := encodeKey(key)
		if err != nil {
			p.problem(err)
			return
		}
		s.Data[ServiceAccountPrivateKeyKey] = private
	}
	s.Data[ServiceAccountPublicKeyKey] = public
	p.store(&p.plan.Authorities, s, reason)
}

// planAuthority generates an authority only where there is none. Its key entry decides: that is what must never be lost.
func (p *planner) planAuthority(a authority) {
	if stored := p.secrets[a.secret]; stored != nil && len(stored.Data[CAKeyKey]) > 0 {
		ca, err := parsePair(stored.Data[CACertKey], stored.Data[CAKeyKey])
		if err != nil {
			p.problem(fmt.Errorf("reading certificate authority %s/%s: %w; restore the secret, or delete it to have a new authority and new certificates",
				p.spec.Namespace, a.secret, err))
			return
		}
		p.rotate(a, stored, ca)
		return
	}
	ca, err := issueAuthority(a, p.spec, p.src)
	if err != nil {
		p.problem(err)
		return
	}
	p.accept(a, generations{current: ca}, "")
	s := p.secret(a.secret)
	setAll(&s.Data, map[string][]byte{CACertKey: ca.certPEM, CAKeyKey: ca.keyPEM, TLSCertKey: ca.certPEM, TLSKeyKey: ca.keyPEM})
	p.store(&p.plan.Authorities, s, "there is none yet")
}

func (p *planner) planLeaf(l leaf) {
	ca, ok := p.cas[l.signer]
	if !ok {
		return // its problem is reported
	}
	spec := p.spec.of(l)
	e := examined{leaf: l, ca: ca, spec: spec, now: p.src.Now}
	if stored := p.secrets[l.secret]; stored != nil {
		e.certPEM, e.keyPEM = stored.Data[l.certEntry()], stored.Data[l.keyEntry()]
		e.caPEM, e.caHash = stored.Data[CACertKey], stored.Annotations[CAHashAnnotation]
		if e.caPEM == nil {
			e.caPEM = []byte{} // missing is out of date too
		}
	}
	reason := reissueReason(e)
	if reason == "" {
		if cert, err := parseCertificate(e.certPEM); err == nil {
			p.recheckFor(cert, ca, spec)
		}
		return
	}
	issued, err := issueLeaf(l, ca, spec, p.src)
	if err != nil {
		p.problem(err)
		return
	}
	p.recheckFor(issued.cert, ca, spec)
	s := p.secret(l.secret)
	setAll(&s.Data, map[string][]byte{l.certEntry(): issued.certPEM, l.keyEntry(): issued.keyPEM, CACertKey: ca.certPEM})
	setAll(&s.Annotations, map[string]string{CAHashAnnotation: ca.hash()})
	p.store(&p.plan.Leaves, s, reason)
}

// recheckFor remembers the earliest renewal.
func (p *planner) recheckFor(cert *x509.Certificate, ca pair, spec Spec) {
	if !cert.NotAfter.Before(ca.cert.NotAfter) {
		return // will not be renewed
	}
	p.recheckIn(renewAt(cert, spec).Sub(p.src.Now))
}

func (p *planner) recheckIn(left time.Duration) {
	left = max(left, minRecheck)
	if p.plan.RecheckAfter == 0 || left < p.plan.RecheckAfter {
		p.plan.RecheckAfter = left
	}
}

// planBundles copies authorities into the ConfigMaps by which others trust them.
func (p *planner) planBundles() {
	p.planPayloadBundles()
	if !p.spec.Undecided || p.configMaps[RootCABundle] == nil {
		p.planBundle(RootCABundle, p.ingressAuthority(), RootCA)
	}
	p.planBundle(AggregatorCABundle, nil, AggregatorSigner)
	p.planBundle(KonnectivityCABundle, nil, KonnectivitySigner)
	p.planBundle(KubeletCABundle, nil, KubeletSigner, ClusterSigner)
	p.planClientCA()
	if !p.spec.UnmanagedEtcd {
		p.planBundle(EtcdCABundle, nil, EtcdSigner)
		p.planBundle(EtcdMetricsCABundle, nil, EtcdMetricsSigner)
		return
	}
	client := p.secrets[EtcdClient]
	if client == nil || len(OnlyCertificates(client.Data[unmanagedEtcdCAKey])) == 0 {
		p.problem(fmt.Errorf("waiting for secret %s/%s with a certificate under %s: it is copied from spec.etcd.unmanaged.tls.clientSecret of the HostedCluster",
			p.spec.Namespace, EtcdClient, unmanagedEtcdCAKey))
		return
	}
	p.planBundle(EtcdCABundle, OnlyCertificates(client.Data[unmanagedEtcdCAKey]))
}

// planClientCA writes whose client certificates the API server takes: ours, those that the control-plane-pki-operator adds, and the user's.
func (p *planner) planClientCA() {
	var total []byte
	if cm := p.configMaps[TotalClientCABundle]; cm != nil {
		total = OnlyCertificates([]byte(cm.Data[names.CABundleKey]))
	}
	if name := p.spec.ClientCA; name != "" {
		var user []byte
		if cm := p.configMaps[name]; cm != nil {
			user = OnlyCertificates([]byte(cm.Data[names.CABundleKey]))
		}
		if len(user) == 0 {
			p.problem(fmt.Errorf("waiting for config map %s/%s with certificates under %s: it is copied from the one that spec.configuration.apiServer.clientCA of the HostedCluster names",
				p.spec.Namespace, name, names.CABundleKey))
			if p.configMaps[ClientCABundle] != nil {
				return // what was trusted stays so while nobody knows what the user wants
			}
		}
		total = append(total, user...)
	}
	p.planBundle(ClientCABundle, total, ControlPlaneSigner, KubeletSigner, SystemAdminSigner, HCCOSigner, KASBootstrapSigner, ClusterSigner)
}

// planBundle writes the certificates of the signers, then extra, in this order.
func (p *planner) planBundle(name string, extra []byte, signers ...string) {
	var bundle bytes.Buffer
	for _, signer := range signers {
		trusted, ok := p.trusted[signer]
		if !ok {
			return // never narrow a bundle because one authority could not be read
		}
		bundle.Write(trusted)
	}
	bundle.Write(extra)
	stored := p.configMaps[name]
	if stored != nil && stored.Data[CACertKey] == bundle.String() {
		return
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.spec.Namespace, Name: name}}
	if stored != nil {
		cm = stored.DeepCopy()
	}
	own(&cm.ObjectMeta, p.spec.Owner)
	setAll(&cm.Data, map[string]string{CACertKey: bundle.String()})
	p.configMaps[name] = cm
	p.plan.Copies = append(p.plan.Copies, Write{ConfigMap: cm, Reason: "its certificates differ from the authorities'"})
}

func (p *planner) planKubeconfig(k kubeconfig) {
	client := p.secrets[k.client]
	root, ok := p.trusted[RootCA]
	if client == nil || !ok {
		return // its problem is reported
	}
	trust := bytes.Clone(root)
	if k.namedCertificates {
		for _, name := range p.spec.NamedCertificates {
			if named := p.secrets[name]; named != nil {
				trust = append(trust, OnlyCertificates(named.Data[TLSCertKey])...)
			}
		}
	}
	want, err := RenderKubeconfig(k.server, trust, client.Data[TLSCertKey], client.Data[TLSKeyKey])
	if err != nil {
		p.problem(err)
		return
	}
	stored := p.secrets[k.secret]
	if stored != nil && bytes.Equal(stored.Data[k.key], want) {
		return
	}
	s := p.secret(k.secret)
	s.Data[k.key] = want
	setAll(&s.Labels, k.labels)
	p.store(&p.plan.Copies, s, "it differs from its certificate, trust or server")
}
