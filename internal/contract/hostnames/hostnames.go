// Package hostnames is what two programs agree on about the host names of control planes: which ones a hosted cluster asks for, and whose one is that
// several ask for. The hypershift-operator refuses what is another's, the shared endpoint and the Gateway lead each name to one control plane.
package hostnames

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

// Name is one by which a service of a control plane is to be reached.
type Name struct {
	// Host is in small letters, without a dot at its end.
	Host string
	// Service is the one that it leads to.
	Service hyperv1.ServiceType
	// Field is where the user wrote it.
	Field string
	// Fixed: it can't change. Others can be set to what somebody else has long had.
	Fixed bool
}

// Of are the names in a spec, each once.
func Of(services []hyperv1.ServicePublishingStrategyMapping, kubeAPIServerDNSName string) (list []Name) {
	add := func(host, field string, service hyperv1.ServiceType, fixed bool) {
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		if host != "" && !slices.ContainsFunc(list, func(n Name) bool { return n.Host == host }) {
			list = append(list, Name{host, service, field, fixed})
		}
	}
	for _, kind := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		for i, s := range services {
			if s.Service != kind {
				continue
			}
			field := fmt.Sprintf("spec.services[%d].servicePublishingStrategy.", i)
			if r := s.ServicePublishingStrategy.Route; r != nil {
				add(string(r.Hostname), field+"route.hostname", kind, true)
			}
			if lb := s.ServicePublishingStrategy.LoadBalancer; lb != nil {
				add(string(lb.Hostname), field+"loadBalancer.hostname", kind, true)
			}
		}
	}
	add(kubeAPIServerDNSName, "spec.kubeAPIServerDNSName", hyperv1.APIServer, false)
	return list
}

// New are the names that a hosted cluster asks for and its control plane, which may be nil, does not have yet.
func New(hc *hyperv1.HostedCluster, plane *hyperv1.HostedControlPlane) []Name {
	list := Of(hc.Spec.Services, hc.Spec.KubeAPIServerDNSName)
	if plane == nil {
		return list
	}
	has := Of(plane.Spec.Services, plane.Spec.KubeAPIServerDNSName)
	return slices.DeleteFunc(list, func(n Name) bool { return slices.ContainsFunc(has, func(h Name) bool { return h.Host == n.Host }) })
}

// Conflict is a name that is another's.
type Conflict struct {
	Name
	// Owner is the other HostedCluster, as names.BackReference.
	Owner string
}

func (c Conflict) String() string {
	return fmt.Sprintf("%s: %s is that of HostedCluster %s: choose another name", c.Field, c.Host, c.Owner)
}

// Taken are those of the new names of a hosted cluster that are another's: of one whose control plane has it, however old that is, since a name can be
// written into an old object; or of one without a control plane that is older and not refused. clusters and planes are all that there are.
func Taken(hc *hyperv1.HostedCluster, wanted []Name, clusters []hyperv1.HostedCluster, planes []hyperv1.HostedControlPlane) (out []Conflict) {
	self, owners, made := names.BackReference(hc), map[string]string{}, map[string]bool{}
	for i := range planes {
		p := &planes[i]
		owner := cmp.Or(p.Annotations[hyperv1.HostedClusterAnnotation], p.Namespace+"/"+p.Name)
		made[owner] = true
		for _, n := range Of(p.Spec.Services, p.Spec.KubeAPIServerDNSName) {
			if owner != self {
				owners[n.Host] = owner
			}
		}
	}
	for i := range clusters {
		other := &clusters[i]
		owner := names.BackReference(other)
		if made[owner] || owner == self || !other.DeletionTimestamp.IsZero() || refused(other) || Older(hc, other) < 0 {
			continue
		}
		for _, n := range Of(other.Spec.Services, other.Spec.KubeAPIServerDNSName) {
			owners[n.Host] = cmp.Or(owners[n.Host], owner)
		}
	}
	for _, n := range wanted {
		if owner := owners[n.Host]; owner != "" {
			out = append(out, Conflict{n, owner})
		}
	}
	return out
}

// Older orders hosted clusters by their age, the oldest first.
func Older(a, b *hyperv1.HostedCluster) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}

// Accepted says whether the operator looked at the configuration of a hosted cluster, as it is now, and found it valid.
func Accepted(hc *hyperv1.HostedCluster) bool { return valid(hc) == metav1.ConditionTrue }

func refused(hc *hyperv1.HostedCluster) bool { return valid(hc) == metav1.ConditionFalse }

func valid(hc *hyperv1.HostedCluster) metav1.ConditionStatus {
	c := meta.FindStatusCondition(hc.Status.Conditions, hyperv1.ValidHostedClusterConfiguration)
	if c == nil || c.ObservedGeneration != hc.Generation {
		return metav1.ConditionUnknown
	}
	return c.Status
}

// Claim is a hosted cluster that asks for a name.
type Claim struct {
	Name
	Cluster *hyperv1.HostedCluster
}

// Claims are all names that hosted clusters ask for; of those who ask for the same, the first has it. That is who had it before, else whose configuration
// was accepted, which Taken keeps the operator from doing twice for a name, else who can't change it, else the oldest. had is the namespace of the control plane that a
// name led to until now; "" for none, which is also how a program begins. Hosted clusters that are being deleted ask for nothing.
func Claims(clusters []hyperv1.HostedCluster, had func(host string) (namespace string)) (list []Claim) {
	for i := range clusters {
		hc := &clusters[i]
		if !hc.DeletionTimestamp.IsZero() {
			continue
		}
		for _, n := range Of(hc.Spec.Services, hc.Spec.KubeAPIServerDNSName) {
			list = append(list, Claim{n, hc})
		}
	}
	rank := func(c Claim) (r int) {
		for _, good := range []bool{had(c.Host) == names.NamespaceOf(c.Cluster), Accepted(c.Cluster), c.Fixed} {
			r *= 2
			if !good {
				r++
			}
		}
		return r
	}
	slices.SortStableFunc(list, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(rank(a), rank(b)), Older(a.Cluster, b.Cluster))
	})
	return list
}
