package hostnames_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/hostnames"
	"hcp.internal/platform/internal/contract/names"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// cluster was made so many minutes after noon, and has a name of each kind.
func cluster(name string, minute int, route, dns string) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "c", UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))}}
	hc.Spec.KubeAPIServerDNSName = dns
	if route != "" {
		hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.OAuthServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: hyperv1.PublishedHostname(route)}}}}
	}
	return hc
}

func judged(hc *hyperv1.HostedCluster, status metav1.ConditionStatus) *hyperv1.HostedCluster {
	hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.ValidHostedClusterConfiguration, Status: status}}
	return hc
}

// plane is the control plane of a hosted cluster, as it is now.
func plane(hc *hyperv1.HostedCluster) *hyperv1.HostedControlPlane {
	return &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: hc.Name, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(hc)}},
		Spec:       hyperv1.HostedControlPlaneSpec{Services: hc.Spec.Services, KubeAPIServerDNSName: hc.Spec.KubeAPIServerDNSName},
	}
}

func TestTaken(t *testing.T) {
	going := cluster("other", 0, "api.example.com", "")
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, tc := range map[string]struct {
		mine, other *hyperv1.HostedCluster
		own, has    *hyperv1.HostedCluster // what control planes were made from; nil: there is none
		says        string
	}{
		"When nobody else has the name it should be free":                        {mine: cluster("mine", 1, "api.example.com", ""), other: cluster("other", 0, "b.example.com", "")},
		"When another control plane has it it should be taken":                   {mine: cluster("mine", 0, "API.example.com.", ""), other: cluster("other", 1, "api.example.com", ""), has: cluster("other", 1, "api.example.com", ""), says: "spec.services[0].servicePublishingStrategy.route.hostname: api.example.com is that of HostedCluster other/c: choose another name"},
		"When an old cluster is given another's name it should be taken":         {mine: cluster("mine", 0, "", "api.example.com"), own: cluster("mine", 0, "", ""), other: cluster("other", 1, "api.example.com", ""), has: cluster("other", 1, "api.example.com", ""), says: "spec.kubeAPIServerDNSName: api.example.com is that of HostedCluster other/c: choose another name"},
		"When its own control plane has it it should go on":                      {mine: cluster("mine", 1, "api.example.com", ""), own: cluster("mine", 1, "api.example.com", ""), other: cluster("other", 0, "api.example.com", ""), has: cluster("other", 0, "api.example.com", "")},
		"When an older one without a control plane asks for it it should wait":   {mine: cluster("mine", 1, "", "api.example.com"), other: cluster("other", 0, "api.example.com", ""), says: "spec.kubeAPIServerDNSName: api.example.com is that of HostedCluster other/c: choose another name"},
		"When a younger one without a control plane asks for it it should go on": {mine: cluster("mine", 0, "", "api.example.com"), other: cluster("other", 1, "api.example.com", "")},
		"When the older one was refused it should go on":                         {mine: cluster("mine", 1, "", "api.example.com"), other: judged(cluster("other", 0, "api.example.com", ""), metav1.ConditionFalse)},
		"When the older one is being deleted it should go on":                    {mine: cluster("mine", 1, "", "api.example.com"), other: going},
		"When what is being deleted still has it it should wait":                 {mine: cluster("mine", 1, "", "api.example.com"), other: going, has: going, says: "spec.kubeAPIServerDNSName: api.example.com is that of HostedCluster other/c: choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var own *hyperv1.HostedControlPlane
			var planes []hyperv1.HostedControlPlane
			if tc.own != nil {
				own = plane(tc.own)
				planes = append(planes, *own)
			}
			if tc.has != nil {
				planes = append(planes, *plane(tc.has))
			}
			got := hostnames.Taken(tc.mine, hostnames.New(tc.mine, own), []hyperv1.HostedCluster{*tc.mine, *tc.other}, planes)
			if tc.says == "" {
				g.Expect(got).To(BeEmpty())
				return
			}
			g.Expect(got).To(HaveLen(1))
			g.Expect(got[0].String()).To(Equal(tc.says))
		})
	}
}

// TestTakenProperties: however clusters come and change their names, no two control planes ever have the same, and one that has a name keeps it.
func TestTakenProperties(t *testing.T) {
	hosts := []string{"", "a.example.com", "b.example.com"}
	rapid.Check(t, func(t *rapid.T) {
		var clusters []hyperv1.HostedCluster
		planes := map[string]*hyperv1.HostedControlPlane{}
		for i := range 3 {
			clusters = append(clusters, *cluster(string(rune('a'+i)), i, rapid.SampledFrom(hosts).Draw(t, "route"), ""))
		}
		for range 12 {
			hc := &clusters[rapid.IntRange(0, 2).Draw(t, "cluster")]
			if rapid.Bool().Draw(t, "change") {
				hc.Spec.KubeAPIServerDNSName = rapid.SampledFrom(hosts).Draw(t, "name")
				hc.Generation++
			}
			var all []hyperv1.HostedControlPlane
			for _, p := range planes {
				all = append(all, *p)
			}
			key, status := names.BackReference(hc), metav1.ConditionFalse
			if len(hostnames.Taken(hc, hostnames.New(hc, planes[key]), clusters, all)) == 0 {
				status, planes[key] = metav1.ConditionTrue, plane(hc)
			}
			hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.ValidHostedClusterConfiguration, Status: status, ObservedGeneration: hc.Generation}}
			owners := map[string]string{}
			for owner, p := range planes {
				for _, n := range hostnames.Of(p.Spec.Services, p.Spec.KubeAPIServerDNSName) {
					if other, taken := owners[n.Host]; taken {
						t.Fatalf("%s is that of %s and of %s", n.Host, owner, other)
					}
					owners[n.Host] = owner
				}
			}
			if !settled(clusters) {
				continue
			}
			// A program that begins knows of no names, and leads each to the control plane that has it, while its cluster asks for it and is valid.
			led := map[string]string{}
			for _, c := range hostnames.Claims(clusters, func(string) string { return "" }) {
				owner := names.BackReference(c.Cluster)
				if led[c.Host] == "" {
					led[c.Host] = owner
				}
				if owners[c.Host] == owner && hostnames.Accepted(c.Cluster) && led[c.Host] != owner {
					t.Fatalf("%s leads to %s and is that of %s", c.Host, led[c.Host], owner)
				}
			}
		}
	})
}

// settled says whether every cluster that has a control plane or was refused one was looked at as it is now.
func settled(clusters []hyperv1.HostedCluster) bool {
	for _, hc := range clusters {
		if len(hc.Status.Conditions) == 0 || hc.Status.Conditions[0].ObservedGeneration != hc.Generation {
			return false
		}
	}
	return true
}
