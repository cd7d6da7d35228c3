package backup

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/etcdbackup/upload/store"
	"hcp.internal/platform/internal/testenv"
)

// demo is what is in the backup of a cluster.
func demo() saved {
	hc := testenv.HostedCluster("clusters", "demo")
	hc.UID, hc.ResourceVersion = "1", "7"
	hc.Finalizers = []string{"hypershift.openshift.io/finalizer"}
	hc.Spec.InfraID, hc.Spec.ClusterID = "demo-x", "0d6a8a36-7d1c-4c6e-9d8b-3c1d0a3f0b11"
	hc.Spec.PullSecret.Name = "demo-pull-secret"
	hc.Spec.Etcd.ManagementType = hyperv1.Managed
	hc.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
	pool := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", UID: "2"}, Spec: hyperv1.NodePoolSpec{ClusterName: "demo"}}
	secret := func(ns, name, key string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "3", Annotations: map[string]string{hyperv1.ReferencedResourceAnnotationPrefix + "demo": "true"},
			OwnerReferences: []metav1.OwnerReference{{Name: "gone"}}}, Data: map[string][]byte{key: []byte("x")}}
	}
	return saved{
		manifest: bundle.Manifest{Backup: "clusters-demo/one", Created: time.Unix(1764000000, 0), Producer: "0.1.0", Key: "0123456789abcdef",
			Cluster: bundle.Cluster{Namespace: "clusters", Name: "demo", Version: "1.36.3"}, Etcd: bundle.Etcd{Revision: 9, Bytes: 1 << 20}},
		objects: bundle.Objects{HostedCluster: hc, NodePools: []hyperv1.NodePool{pool}, Secrets: []corev1.Secret{secret("clusters", "demo-pull-secret", ".dockerconfigjson")},
			Authorities: []corev1.Secret{secret("clusters-demo", "root-ca", "ca.key"), secret("clusters-demo", "sa-signing-key", "service-account.key")}},
	}
}

func restored() target {
	return target{namespace: "clusters", name: "demo", url: "s3://backups/demo/1.db.enc", access: map[string][]byte{"credentials": []byte("k")}, pools: true}
}

func copied() target {
	t := restored()
	t.name, t.clone = "copy", true
	return t
}

// TestChecked: etcd reads the snapshot that was checked, and none that is put beside it later.
func TestChecked(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Volume: t.TempDir(), Bucket: "backups"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	m := bundle.Manifest{Snapshot: bundle.File{Name: "1.db.enc"}}
	for from, name := range map[string]string{
		"s3://backups/demo/1.db.enc": "When the snapshot is named it should stay as it is named",
		"s3://backups/demo/1.db":     "When the snapshot is named without .enc it should become that of the sealed one",
		"s3://backups/demo/1.json":   "When the manifest is named it should become that of the snapshot",
	} {
		t.Run(name, func(t *testing.T) {
			o := opened{Store: s, file: strings.TrimPrefix(from, "s3://backups/")}
			NewWithT(t).Expect(o.checked(from, m)).To(Equal("s3://backups/demo/1.db.enc"))
		})
	}
}

func TestBuild(t *testing.T) {
	t.Run("When a cluster is restored it should be the same one, with its authorities, and begin with the snapshot", func(t *testing.T) {
		g := NewWithT(t)
		s := demo()
		m, err := build(s.objects, restored())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.cluster.Spec.InfraID).To(Equal("demo-x"))
		g.Expect(m.cluster.Spec.Etcd.Managed.Storage.RestoreSnapshotURL).To(Equal([]string{"s3://backups/demo/1.db.enc"}))
		g.Expect(m.cluster.UID).To(BeEmpty())
		g.Expect(m.cluster.Finalizers).To(BeEmpty())
		g.Expect(m.namespace.Name).To(Equal("clusters-demo"))
		var names []string
		for _, secret := range m.secrets {
			names = append(names, secret.Namespace+"/"+secret.Name)
			g.Expect(secret.OwnerReferences).To(BeEmpty())
		}
		g.Expect(m.way).To(BeNil(), "Amazon's S3 is in the world, which etcd's policy lets it reach")
		g.Expect(names).To(Equal([]string{"clusters-demo/etcd-restore", "clusters-demo/root-ca", "clusters-demo/sa-signing-key"}))
		g.Expect(m.sources[0].GetAnnotations()).To(BeEmpty())
		g.Expect(s.objects.HostedCluster.Finalizers).NotTo(BeEmpty(), "the backup should stay as it is")
	})
	t.Run("When a cluster is cloned nothing of the other's identity should be in it", func(t *testing.T) {
		g := NewWithT(t)
		m, err := build(demo().objects, copied())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.cluster.Spec.InfraID + m.cluster.Spec.ClusterID).To(BeEmpty())
		g.Expect(m.secrets).To(HaveLen(1), "authorities are its own")
		g.Expect(m.cluster.Spec.PullSecret.Name).To(Equal("copy-pull-secret"))
		g.Expect(m.sources[0].GetName()).To(Equal("copy-pull-secret"))
		g.Expect(m.pools[0].Name).To(Equal("copy-demo"))
		g.Expect(m.pools[0].Spec.ClusterName).To(Equal("copy"))
		g.Expect(m.cluster.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/clone-of", "clusters/demo"))
	})
	t.Run("When service accounts have a key of the user's a restored cluster should keep it, and a clone should get another one", func(t *testing.T) {
		g := NewWithT(t)
		s := signed(demo())
		m, err := build(s.objects, restored())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.cluster.Spec.ServiceAccountSigningKey).To(HaveValue(Equal(corev1.LocalObjectReference{Name: "demo-signer"})))
		g.Expect(m.cluster.Spec.IssuerURL).To(Equal("https://issuer.example.com"))
		g.Expect(m.sources).To(HaveLen(2))
		m, err = build(s.objects, copied())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.cluster.Spec.ServiceAccountSigningKey).To(BeNil())
		g.Expect(m.cluster.Spec.IssuerURL).To(BeEmpty(), "what is published there is the other key")
		g.Expect(m.sources).To(HaveLen(1))
		g.Expect(m.sources[0].GetName()).To(Equal("copy-pull-secret"))
		g.Expect(s.objects.HostedCluster.Spec.ServiceAccountSigningKey).NotTo(BeNil(), "the backup should stay as it is")
	})
	t.Run("When service accounts have a key of the operator's a clone should keep the issuer", func(t *testing.T) {
		g := NewWithT(t)
		s := demo()
		s.objects.HostedCluster.Spec.IssuerURL = "https://issuer.example.com"
		m, err := build(s.objects, copied())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.cluster.Spec.IssuerURL).To(Equal("https://issuer.example.com"))
	})
	t.Run("When keys of encryption were changing both should be there, also in a clone", func(t *testing.T) {
		g := NewWithT(t)
		for _, to := range []target{restored(), copied()} {
			s := demo()
			s.objects.Authorities = append(s.objects.Authorities, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: encryption.ConfigSecret}, Data: map[string][]byte{encryption.ConfigKey: []byte("both")}})
			m, err := build(s.objects, to)
			g.Expect(err).NotTo(HaveOccurred())
			last := m.secrets[len(m.secrets)-1]
			g.Expect(last.Namespace + "/" + last.Name).To(Equal(m.namespace.Name + "/" + encryption.ConfigSecret))
			g.Expect(last.Data).To(HaveKeyWithValue(encryption.ConfigKey, []byte("both")))
		}
	})
	t.Run("When the storage has an address of its own etcd should get a way to its port, and to no other", func(t *testing.T) {
		g := NewWithT(t)
		for url, want := range map[string]int{"http://10.244.0.1:9000": 9000, "https://minio.storage.svc": 443, "http://minio": 80} {
			to := restored()
			to.access["credentials"] = []byte("[default]\naws_access_key_id = a\nendpoint_url = " + url + "\n")
			m, err := build(demo().objects, to)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.way.Spec.Egress).To(HaveLen(1))
			g.Expect(m.way.Spec.Egress[0].Ports[0].Port.IntValue()).To(Equal(want), url)
		}
	})
	t.Run("When etcd is somebody else's it should say so", func(t *testing.T) {
		s := demo()
		s.objects.HostedCluster.Spec.Etcd.Managed = nil
		_, err := build(s.objects, restored())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("was not managed by the operator")))
	})
}

// signed has the user's key for service accounts, whose public part is published by the issuer.
func signed(s saved) saved {
	hc := s.objects.HostedCluster
	hc.Spec.IssuerURL, hc.Spec.ServiceAccountSigningKey = "https://issuer.example.com", &corev1.LocalObjectReference{Name: "demo-signer"}
	s.objects.Secrets = append(s.objects.Secrets, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo-signer"}, Data: map[string][]byte{"key": []byte("private")}})
	return s
}

func TestJudgeSigningKey(t *testing.T) {
	for name, tc := range map[string]struct {
		saved saved
		to    target
		want  bool
	}{
		"When a clone gets another key for service accounts it should say so": {signed(demo()), copied(), true},
		"When the key stays it should say nothing":                            {signed(demo()), restored(), false},
		"When a clone gets another one of the operator's it should be silent": {demo(), copied(), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m, err := build(tc.saved.objects, tc.to)
			g.Expect(err).NotTo(HaveOccurred())
			lines := judge(tc.saved, world{}, m, tc.to).lines
			says := ContainElement(And(ContainSubstring("spec.serviceAccountSigningKey"), ContainSubstring("https://issuer.example.com")))
			if !tc.want {
				says = Not(says)
			}
			g.Expect(lines).To(says)
		})
	}
}

// parts are what is judged.
type parts struct {
	s saved
	w world
	t target
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*parts)
		want   string // of a refusal; empty: none
	}{
		"When nothing is in the way it should be allowed":        {func(*parts) {}, ""},
		"When the cluster exists it should be refused":           {func(p *parts) { p.w.cluster = testenv.HostedCluster("clusters", "demo") }, "HostedCluster clusters/demo exists"},
		"When the namespace is another's it should be refused":   {func(p *parts) { p.w.namespace = namespaceOf("clusters/other") }, "is not of this cluster"},
		"When an interrupted restore left it it should go on":    {func(p *parts) { p.w.namespace = namespaceOf("clusters/demo") }, ""},
		"When the release is newer it should be refused":         {func(p *parts) { p.w.versions = []string{"1.35"} }, "can't host release 1.36.3: it hosts 1.35"},
		"When the release is hosted it should be allowed":        {func(p *parts) { p.w.versions = []string{"1.36"} }, ""},
		"When it is an OpenShift payload it should be refused":   {func(p *parts) { p.s.manifest.Cluster.Version = "4.22.1" }, "is an OpenShift payload"},
		"When a newer version made it it should be refused":      {func(p *parts) { p.s.manifest.Producer = "99.0.0" }, "made by version 99.0.0"},
		"When the volume is too small it should be refused":      {func(p *parts) { p.s.manifest.Etcd.Bytes = 5 << 30 }, "the volume of etcd has"},
		"When the volume was made larger it should be allowed":   {func(p *parts) { p.s.manifest.Etcd.Bytes = 5 << 30; p.size("16Gi") }, ""},
		"When a source has another content it should be refused": {func(p *parts) { p.w.sources = []client.Object{&corev1.Secret{}} }, "exists with another content"},
		"When the one that was saved lives on it should be refused": {func(p *parts) {
			p.t.name = "other"
			p.w.others = []hyperv1.HostedCluster{*p.s.objects.HostedCluster}
		}, "is the one that was saved"},
		"When the one that was saved lives on a clone should be allowed": {func(p *parts) {
			p.t = copied()
			p.w.others = []hyperv1.HostedCluster{*p.s.objects.HostedCluster}
		}, ""},
		"When a cloud's cluster is cloned it should be refused": {func(p *parts) {
			p.t = copied()
			p.s.objects.HostedCluster.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform}
		}, "can't be cloned"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := parts{s: demo(), t: restored()}
			tc.change(&p)
			m, err := build(p.s.objects, p.t)
			g.Expect(err).NotTo(HaveOccurred())
			got := strings.Join(judge(p.s, p.w, m, p.t).refusals, "\n")
			if tc.want == "" {
				g.Expect(got).To(BeEmpty())
				return
			}
			g.Expect(got).To(ContainSubstring(tc.want))
		})
	}
}

func namespaceOf(owner string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: owner}}}
}

func (p *parts) size(text string) {
	q := resource.MustParse(text)
	p.s.objects.HostedCluster.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{Size: &q}
}

func TestWrite(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.CRDs(config.TechPreviewSet)
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	c := env.Client(t, connect.Scheme())
	s := demo()
	s.objects.NodePools = nil
	to := restored()
	to.namespace = env.Namespace(t)
	raw, err := json.Marshal(s.objects)
	g.Expect(err).NotTo(HaveOccurred())
	packed, err := bundle.Pack(raw)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := bundle.DecodeObjects(packed)
	g.Expect(err).NotTo(HaveOccurred())
	m, err := build(objects, to)
	g.Expect(err).NotTo(HaveOccurred())
	parts, err := tell(t.Context(), c, &corev1.Namespace{}, s.manifest, m.secrets[0].Data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(parts[""].RevisionBump).To(BeNumerically("~", time.Now().UnixMicro(), time.Hour.Microseconds()), "When it asks the API server for the time it should get it")
	spaces := &corev1.NamespaceList{}
	g.Expect(c.List(t.Context(), spaces)).To(Succeed())
	g.Expect(spaces.Items).NotTo(ContainElement(HaveField("Name", HavePrefix(backups.Secret))), "When it asks for the time it should create nothing")
	for range 2 { // the second time as after an interruption
		w, err := look(t.Context(), c, "hypershift", m)
		g.Expect(err).NotTo(HaveOccurred())
		w.cluster, w.others = nil, nil
		g.Expect(judge(s, w, m, to).refusals).To(BeEmpty())
		g.Expect(write(t.Context(), c, m, progress.New(io.Discard, nil))).To(Succeed())
	}
	hc := &hyperv1.HostedCluster{}
	g.Expect(c.Get(t.Context(), m.key(), hc)).To(Succeed())
	g.Expect(hc.Spec.Etcd.Managed.Storage.RestoreSnapshotURL).To(HaveLen(1))
	for _, secret := range m.secrets {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{})).To(Succeed())
	}
	w, err := look(t.Context(), c, "hypershift", m)
	g.Expect(err).NotTo(HaveOccurred())
	r := judge(s, w, m, to)
	g.Expect(r.again).To(BeTrue(), "When the command is interrupted it should be gone on with: %v", r.refusals)
	g.Expect(c.Delete(t.Context(), m.secrets[0].DeepCopy())).To(Succeed())
	w, err = look(t.Context(), c, "hypershift", m)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(judge(s, w, m, to).refusals).To(ContainElement(ContainSubstring("exists: destroy it first")), "When it is there it should not be restored over")
}

// in is what is judged of a restore in place.
type in struct {
	s  saved
	st standing
}

func (i *in) runs(version string) {
	i.st.cluster.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: version}}}
}

// keys has kube-apiserver the same keys as in the backup, whose change was there then, and is here now.
func (i *in) keys(config corev1.Secret, then, now hyperv1.SecretEncryptionStatus) {
	i.s.objects.Authorities = append(i.s.objects.Authorities, config)
	i.s.objects.HostedCluster.Status.SecretEncryption = then
	i.st.keys, i.st.rotation = &config, now
}

// status says which key everything is encrypted with, and which it is to be; empty: none.
func status(active, target string) hyperv1.SecretEncryptionStatus {
	ref := func(name string) hyperv1.SecretEncryptionKeyStatus {
		if name == "" {
			return hyperv1.SecretEncryptionKeyStatus{}
		}
		return encryption.AESCBCRef(name, encryption.NewKey(bytes.Repeat([]byte(name), encryption.KeySize)))
	}
	return hyperv1.SecretEncryptionStatus{ActiveKey: ref(active), TargetKey: ref(target)}
}

func TestJudgeInPlace(t *testing.T) {
	machine := func(name string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{"kind": "Machine", "metadata": map[string]any{"name": name}, "status": map[string]any{"nodeRef": map[string]any{"name": name}}}}
	}
	config := func(text string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: encryption.ConfigSecret}, Data: map[string][]byte{encryption.ConfigKey: []byte(text)}}
	}
	configOf := func(letters ...string) string {
		var keys []encryption.Key
		for _, l := range letters {
			keys = append(keys, encryption.NewKey(bytes.Repeat([]byte(l), encryption.KeySize)))
		}
		raw, err := encryption.Config(keys)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return string(raw)
	}
	one, two := config(configOf("b")), config(configOf("b", "a"))
	for name, tc := range map[string]struct {
		change func(*in)
		want   string // of a refusal; empty: none
		says   string
	}{
		"When the cluster is there it should be allowed":   {func(*in) {}, "", "what was written after 2025-11-24T16:00:00Z is lost"},
		"When there is none it should be refused":          {func(i *in) { i.st.cluster = nil }, "without --in-place, it is created from the backup", ""},
		"When it is another cluster it should be refused":  {func(i *in) { i.st.cluster.Spec.InfraID = "other" }, `is of another cluster: its infraID is "demo-x"`, ""},
		"When its etcd is the user's it should be refused": {func(i *in) { i.st.cluster.Spec.Etcd.Managed = nil }, "is yours", ""},
		"When it sleeps it should be refused": {func(i *in) {
			i.st.cluster.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterHibernated, Status: metav1.ConditionTrue}}
		}, "sleeps: wake it first", ""},
		"When the volume is too small it should be refused":      {func(i *in) { i.s.manifest.Etcd.Bytes = 5 << 30 }, "the volume of etcd has", ""},
		"When the operator is gone it should be refused":         {func(i *in) { i.st.image = "" }, "Deployment control-plane-operator is not there", ""},
		"When the backup is of a newer release it should refuse": {func(i *in) { i.runs("1.35.9") }, "at most one minor version", ""},
		"When the backup is much older it should be refused":     {func(i *in) { i.runs("1.38.0") }, "at most one minor version", ""},
		"When the cluster was upgraded it should be allowed":     {func(i *in) { i.runs("1.37.0") }, "", ""},
		"When keys were changed since it should be refused": {func(i *in) {
			i.s.objects.Authorities = append(i.s.objects.Authorities, config("old"))
			i.st.keys = ptr.To(config("new"))
		}, "encrypted with other keys", ""},
		"When Secrets were not encrypted then it should be refused": {func(i *in) { i.st.keys = ptr.To(config("new")) }, "encrypted with other keys", ""},
		"When keys are the same it should be allowed": {func(i *in) {
			i.s.objects.Authorities = append(i.s.objects.Authorities, config("same"))
			i.st.keys = ptr.To(config("same"))
		}, "", ""},
		"When keys were changing as they are now it should be allowed": {func(i *in) { i.keys(two, status("a", "b"), status("a", "b")) }, "", ""},
		"When the change was completed since, and the old key isn't gone yet, it should be refused": {func(i *in) { i.keys(two, status("a", "b"), status("b", "")) },
			"encrypted with several keys, whose change was not where it is now", ""},
		"When the same two keys change the other way it should be refused":          {func(i *in) { i.keys(two, status("a", "b"), status("b", "a")) }, "encrypted with several keys", ""},
		"When a second key is kept beside the one that writes it should be allowed": {func(i *in) { i.keys(two, status("b", ""), status("b", "")) }, "", ""},
		"When there is one key it should be allowed, whatever was said of it":       {func(i *in) { i.keys(one, status("", "b"), status("b", "")) }, "", ""},
		"When the data came by a command that was killed, and keys were changed since, it should be gone on with": {func(i *in) {
			i.keys(one, status("b", ""), status("c", ""))
			i.st.keys = ptr.To(config("new"))
			i.st.etcd = &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{restoredNote: "2026-01-02T03:04:05Z " + restored().url}}}
		}, "", "nothing is replaced again"},
		"When a node is newer than the backup it should be named": {func(i *in) {
			i.s.objects.Machines = []unstructured.Unstructured{machine("a"), machine("gone")}
			i.st.machines = []unstructured.Unstructured{machine("a"), machine("b")}
		}, "", "Later nodes    b: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			i := &in{s: demo(), st: standing{cluster: demo().objects.HostedCluster, image: "operators:1"}}
			tc.change(i)
			r := judgeInPlace(i.s, i.st, restored())
			g.Expect(strings.Join(r.lines, "\n")).To(ContainSubstring(tc.says))
			if tc.want == "" {
				g.Expect(r.refusals).To(BeEmpty())
				return
			}
			g.Expect(r.refusals).To(ContainElement(ContainSubstring(tc.want)))
		})
	}
	t.Run("When a machine has gone its Node should go, and no Node of one that is there, also when that is not known to be its", func(t *testing.T) {
		unknown := machine("b")
		unstructured.RemoveNestedField(unknown.Object, "status")
		NewWithT(t).Expect(nodesOnlyIn([]unstructured.Unstructured{machine("a"), machine("b")}, []unstructured.Unstructured{unknown})).To(Equal([]string{"a"}))
	})
	t.Run("When a machine that is there has the name of a Node of before that Node should stay", func(t *testing.T) {
		again := machine("a")
		again.SetName("made-later")
		NewWithT(t).Expect(nodesOnlyIn([]unstructured.Unstructured{machine("a"), machine("b")}, []unstructured.Unstructured{again})).To(Equal([]string{"b"}))
	})
	t.Run("When the data came by a command that was killed the report should say that nothing is replaced again", func(t *testing.T) {
		g := NewWithT(t)
		etcd := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{restoredNote: "2026-01-02T03:04:05Z " + restored().url}}}
		st := standing{cluster: demo().objects.HostedCluster, image: "operators:1", etcd: etcd}
		r := judgeInPlace(demo(), st, restored())
		g.Expect(r.refusals).To(BeEmpty())
		g.Expect(strings.Join(r.lines, "\n")).To(And(ContainSubstring("Restored       at 2026-01-02T03:04:05Z"), Not(ContainSubstring("is lost"))))
		etcd.Annotations[restoredNote] += ".other"
		g.Expect(strings.Join(judgeInPlace(demo(), st, restored()).lines, "\n")).To(ContainSubstring("is lost"), "When it was another backup this one should be restored")
	})
	t.Run("When the storage is in the world the pod that restores should reach it and names, and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		p := wayOut(nil, "clusters-demo")
		g.Expect(p.Spec.PodSelector.MatchLabels).To(HaveKey(backups.RestoreLabel))
		var ports []int
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				ports = append(ports, port.Port.IntValue())
			}
		}
		g.Expect(ports).To(Equal([]int{443, 53, 5353, 53, 5353}))
	})
}
