package backup

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/pause"
)

// target is what a backup becomes.
type target struct {
	namespace, name string
	// url is where etcd finds the snapshot; access is how.
	url    string
	access map[string][]byte
	// clone: a new cluster beside the old one, with authorities and identifiers of its own.
	clone bool
	// pools: the NodePools are made, too.
	pools bool
}

// made is what is written, in this order.
type made struct {
	// sources are in the namespace of the HostedCluster; secrets in that of its control plane, which namespace is.
	sources   []client.Object
	namespace *corev1.Namespace
	secrets   []*corev1.Secret
	// way lets etcd reach the storage, which its policy would refuse in the management cluster's own networks; nil: the storage is in the world.
	way     *networkingv1.NetworkPolicy
	cluster *hyperv1.HostedCluster
	pools   []*hyperv1.NodePool
}

// build makes the objects of a restored or cloned cluster. It is pure.
func build(o bundle.Objects, t target) (made, error) {
	hc := o.HostedCluster.DeepCopy()
	hc.ObjectMeta = fresh(hc.ObjectMeta, t.namespace, t.name)
	hc.Status = hyperv1.HostedClusterStatus{}
	if hc.Spec.Etcd.Managed == nil {
		return made{}, fmt.Errorf("the etcd of the cluster was not managed by the operator: there is nothing to restore")
	}
	hc.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{t.url}
	hc.Spec.PausedUntil = nil
	// Who restores wants the cluster to come up, whatever the hour.
	delete(hc.Annotations, hyperv1.HibernateAnnotation)
	delete(hc.Annotations, pause.ScheduleAnnotation)
	m := made{cluster: hc}
	controlPlane := names.NamespaceOf(hc)
	m.namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controlPlane, Labels: map[string]string{hyperv1.HostedControlPlaneLabel: "true"},
		Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)}}}
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controlPlane, Name: backups.Secret}, Data: t.access}
	m.secrets = append(m.secrets, access)
	if m.way = wayTo(t.access[backups.CredentialsKey], controlPlane); m.way != nil {
		shards, _ := backups.ShardsOf(hc.Spec.Etcd)
		m.way.Spec.PodSelector = backups.PodsOf(shards)
	}
	for _, s := range o.Authorities {
		// A clone has authorities of its own. What it reads was encrypted by the other cluster.
		if t.clone && s.Name != encryption.ConfigSecret {
			continue
		}
		c := s.DeepCopy()
		c.ObjectMeta = fresh(c.ObjectMeta, controlPlane, c.Name)
		m.secrets = append(m.secrets, c)
	}
	renamed := map[string]string{}
	name := func(old string) string {
		if !t.clone {
			return old
		}
		renamed[old] = t.name + "-" + strings.TrimPrefix(old, o.HostedCluster.Name+"-")
		return renamed[old]
	}
	for _, s := range o.Secrets {
		if key := o.HostedCluster.Spec.ServiceAccountSigningKey; t.clone && key != nil && key.Name == s.Name {
			continue // the operator makes another one
		}
		c := s.DeepCopy()
		c.ObjectMeta = fresh(c.ObjectMeta, t.namespace, name(c.Name))
		m.sources = append(m.sources, c)
	}
	for _, s := range o.ConfigMaps {
		c := s.DeepCopy()
		c.ObjectMeta = fresh(c.ObjectMeta, t.namespace, name(c.Name))
		m.sources = append(m.sources, c)
	}
	for _, p := range o.NodePools {
		if !t.pools {
			break
		}
		c := p.DeepCopy()
		c.ObjectMeta = fresh(c.ObjectMeta, t.namespace, name(c.Name))
		c.Status = hyperv1.NodePoolStatus{}
		c.Spec.ClusterName = t.name
		m.pools = append(m.pools, c)
	}
	if t.clone {
		if err := ofItsOwn(hc, m.pools, renamed); err != nil {
			return made{}, err
		}
		hc.Annotations[backups.CloneOfAnnotation] = o.HostedCluster.Namespace + "/" + o.HostedCluster.Name
	}
	return m, nil
}

// leftOut are annotations that API servers and controllers have added: hashes of what was applied, and where the objects of Cluster API were and how they came there. There are
// none of those yet, and the operator here says where it stores them; one that stores them elsewhere would take the cluster for another's for ever.
var leftOut = []string{
	corev1.LastAppliedConfigAnnotation,
	hyperv1.PrivateCAPITypesAnnotation, hyperv1.PrivateCAPIMigrationInProgressAnnotation, hyperv1.PrivateCAPIMigrationLockAnnotation, hyperv1.PrivateCAPIMigrationAckAnnotation,
	hyperv1.PrivateCAPIMigrateAnnotation, hyperv1.PrivateCAPIRollbackAnnotation, hyperv1.PrivateCAPIMovedAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation,
}

// fresh is metadata without what an API server and its controllers have added.
func fresh(m metav1.ObjectMeta, namespace, name string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: m.Labels, Annotations: map[string]string{}}
	for k, v := range m.Annotations {
		legacy := k == hyperv1.HostedClusterScopeAnnotation && v == hyperv1.LegacyScope // the same as no annotation about storage; other scopes are the user's
		// Who refers to a source is noted by the operator again.
		if !strings.HasPrefix(k, hyperv1.ReferencedResourceAnnotationPrefix) && !slices.Contains(leftOut, k) && !legacy {
			out.Annotations[k] = v
		}
	}
	return out
}

// ofItsOwn takes from a clone what belongs to the other cluster: identifiers, the key and issuer of service accounts, host names and ports, and names of objects
// that are copied for it.
func ofItsOwn(hc *hyperv1.HostedCluster, pools []*hyperv1.NodePool, renamed map[string]string) error {
	hc.Spec.InfraID, hc.Spec.ClusterID, hc.Spec.KubeAPIServerDNSName = "", "", ""
	if hc.Spec.ServiceAccountSigningKey != nil {
		// The issuer that was named with the key publishes that one: whoever asks it would take tokens of the other cluster, and none of the clone's.
		hc.Spec.ServiceAccountSigningKey, hc.Spec.IssuerURL = nil, ""
	}
	for i := range hc.Spec.Services {
		s := &hc.Spec.Services[i].ServicePublishingStrategy
		if s.NodePort != nil {
			s.NodePort.Port = 0
		}
		if s.LoadBalancer != nil {
			s.LoadBalancer.Hostname = ""
		}
		if s.Route != nil {
			s.Route.Hostname = ""
		}
	}
	if err := rename(&hc.Spec, renamed); err != nil {
		return err
	}
	for _, p := range pools {
		if err := rename(&p.Spec, renamed); err != nil {
			return err
		}
	}
	return nil
}

// rename changes references to objects that have another name now: fields called name. Other texts stay, whatever they say.
func rename(spec any, renamed map[string]string) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return err
	}
	walk(tree, renamed)
	if raw, err = json.Marshal(tree); err != nil {
		return err
	}
	return json.Unmarshal(raw, spec)
}

func walk(node any, renamed map[string]string) {
	switch n := node.(type) {
	case map[string]any:
		for key, value := range n {
			if text, ok := value.(string); ok && key == "name" && renamed[text] != "" {
				n[key] = renamed[text]
			}
			walk(value, renamed)
		}
	case []any:
		for _, item := range n {
			walk(item, renamed)
		}
	}
}

// endpoint is a line of a credentials file.
var endpoint = regexp.MustCompile(`(?m)^\s*endpoint_url\s*=\s*(\S+)\s*$`)

// wayTo opens the port of an endpoint for etcd; nil for one that isn't named. Where behind it the storage is, may be the pod of a Service, so the address stays open.
func wayTo(credentials []byte, namespace string) *networkingv1.NetworkPolicy {
	address := ""
	if found := endpoint.FindSubmatch(credentials); found != nil {
		address = string(found[1])
	} else if c, err := backups.ParseAzure(credentials); err == nil {
		address = c.Endpoint
	}
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil // the client of the storage has said so already
	}
	port, err := strconv.ParseInt(u.Port(), 10, 32)
	if err != nil {
		port = map[string]int64{"http": 80}[u.Scheme]
		if port == 0 {
			port = 443
		}
	}
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: backups.Secret}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": names.Etcd}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress: []networkingv1.NetworkPolicyEgressRule{{
			Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(int32(port)))}}}},
	}}
}
