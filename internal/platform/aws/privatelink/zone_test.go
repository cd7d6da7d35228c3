package privatelink

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestChooseZone(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []claim
		want   string
	}{
		"When one is on the cluster's VPC it should be that":                     {[]claim{{id: "a", tagged: true}, {id: "b", onVPC: true}}, "b"},
		"When none is on the VPC it should be the one with the tag":              {[]claim{{id: "a", foreign: true, readable: true}, {id: "b", tagged: true}}, "b"},
		"When nothing may be asked it should be the one that may be read":        {[]claim{{id: "a"}, {id: "b", readable: true}}, "b"},
		"When one that may be read is another cluster's it should not be that":   {[]claim{{id: "a", foreign: true, readable: true}, {id: "b", readable: true}}, "b"},
		"When two may be read nothing should be chosen":                          {[]claim{{id: "a", readable: true}, {id: "b", readable: true}}, ""},
		"When two have the tag nothing should be chosen, though one may be read": {[]claim{{id: "a", tagged: true}, {id: "b", tagged: true, readable: true}}, ""},
		"When all are other clusters' nothing should be chosen":                  {[]claim{{id: "a", foreign: true, readable: true}, {id: "b", foreign: true}}, ""},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(choose(tc.claims)).To(Equal(tc.want)) })
	}
}

// dns plays Route 53 with private zones demo.hypershift.local, by their IDs.
type dns struct {
	vpcs    map[string]string // the VPC of each zone
	tags    map[string]string // the cluster of each zone
	records map[string]string // what api.… of each zone leads to
	denied  bool              // only records may be asked for, and only of zone own
	own     string
	deleted []string // zones of which a record was deleted
}

func (d *dns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const xmlns = ` xmlns="https://route53.amazonaws.com/doc/2013-04-01/"`
	path := strings.TrimPrefix(r.URL.Path, "/2013-04-01/")
	parts := strings.Split(path, "/")
	id := parts[len(parts)-1]
	records := strings.Contains(path, "/rrset")
	if records {
		id = parts[1]
	}
	zone := func(id string) string {
		return "<HostedZone><Id>/hostedzone/" + id + "</Id><Name>demo.hypershift.local.</Name><CallerReference>x</CallerReference><Config><PrivateZone>true</PrivateZone></Config></HostedZone>"
	}
	switch {
	case path == "hostedzone":
		fmt.Fprint(w, "<ListHostedZonesResponse"+xmlns+"><HostedZones>")
		for _, id := range slices.Sorted(maps.Keys(d.vpcs)) {
			fmt.Fprint(w, zone(id))
		}
		fmt.Fprint(w, "</HostedZones><IsTruncated>false</IsTruncated><MaxItems>100</MaxItems></ListHostedZonesResponse>")
	case d.denied && (!records || id != d.own):
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<ErrorResponse"+xmlns+"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>")
	case records && r.Method == http.MethodPost:
		d.deleted = append(d.deleted, id)
		fmt.Fprint(w, "<ChangeResourceRecordSetsResponse"+xmlns+"><ChangeInfo><Id>1</Id><Status>INSYNC</Status><SubmittedAt>2026-01-02T12:00:00Z</SubmittedAt></ChangeInfo></ChangeResourceRecordSetsResponse>")
	case records:
		fmt.Fprint(w, "<ListResourceRecordSetsResponse"+xmlns+"><ResourceRecordSets>")
		if target := d.records[id]; target != "" {
			fmt.Fprint(w, "<ResourceRecordSet><Name>api.demo.hypershift.local.</Name><Type>CNAME</Type><TTL>300</TTL><ResourceRecords><ResourceRecord><Value>"+target+"</Value></ResourceRecord></ResourceRecords></ResourceRecordSet>")
		}
		fmt.Fprint(w, "</ResourceRecordSets><IsTruncated>false</IsTruncated><MaxItems>1</MaxItems></ListResourceRecordSetsResponse>")
	case parts[0] == "tags":
		fmt.Fprint(w, "<ListTagsForResourceResponse"+xmlns+"><ResourceTagSet><ResourceType>hostedzone</ResourceType><ResourceId>"+id+"</ResourceId><Tags>")
		if cluster := d.tags[id]; cluster != "" {
			fmt.Fprint(w, "<Tag><Key>kubernetes.io/cluster/"+cluster+"</Key><Value>owned</Value></Tag>")
		}
		fmt.Fprint(w, "</Tags></ResourceTagSet></ListTagsForResourceResponse>")
	default:
		fmt.Fprint(w, "<GetHostedZoneResponse"+xmlns+">"+zone(id)+"<VPCs><VPC><VPCRegion>eu-west-1</VPCRegion><VPCId>"+d.vpcs[id]+"</VPCId></VPC></VPCs></GetHostedZoneResponse>")
	}
}

func (d *dns) consumer(t *testing.T) *Consumer {
	t.Helper()
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return &Consumer{route53: route53.New(route53.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})}
}

func TestZoneOfSeveral(t *testing.T) {
	hcp := controlPlane(byBalancer)
	hcp.Spec.Platform.AWS.CloudProviderConfig = &hyperv1.AWSCloudProviderConfig{VPC: "vpc-ours"}
	hcp.Spec.Platform.AWS.RolesRef.ControlPlaneOperatorARN = "arn:aws:iam::1:role/cpo"
	for name, tc := range map[string]struct {
		dns  dns
		want string
		says string
	}{
		"When another cluster has the same name it should take the zone of its own VPC": {
			dns: dns{vpcs: map[string]string{"Z1": "vpc-theirs", "Z2": "vpc-ours", "Z3": "vpc-others"}}, want: "Z2"},
		"When none is on the VPC it should take the one with the cluster's tag": {
			dns: dns{vpcs: map[string]string{"Z1": "vpc-theirs", "Z2": "vpc-2"}, tags: map[string]string{"Z1": "demo-other", "Z2": "demo-abcde"}}, want: "Z2"},
		"When the role may only read its own zone it should take that": {
			dns: dns{vpcs: map[string]string{"Z1": "vpc-theirs", "Z2": "vpc-ours"}, denied: true, own: "Z2"}, want: "Z2"},
		"When nothing tells it should fail and say what to do": {
			dns: dns{vpcs: map[string]string{"Z1": "vpc-theirs", "Z2": "vpc-2"}, denied: true}, says: "associate one of them with VPC vpc-ours, or delete the others, and let role arn:aws:iam::1:role/cpo call route53:GetHostedZone"},
		"When there is one of the name alone it should take it": {
			dns: dns{vpcs: map[string]string{"Z1": "vpc-2"}, denied: true}, want: "Z1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			id, err := tc.dns.consumer(t).zone(t.Context(), &hyperv1.AWSEndpointService{}, hcp)
			if tc.says != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring("2 private hosted zones demo.hypershift.local"), ContainSubstring(tc.says))))
				return
			}
			g.Expect(id, err).To(Equal(tc.want))
		})
	}
}

func TestRemoveRecords(t *testing.T) {
	const ours, theirs = "vpce-1-abc.vpce-svc-1.eu-west-1.vpce.amazonaws.com.", "vpce-11-abc.vpce-svc-11.eu-west-1.vpce.amazonaws.com"
	for name, tc := range map[string]struct {
		leadsTo  string
		service  string
		endpoint string
		deleted  bool
	}{
		"When a record leads to the cluster's endpoint it should go":                         {ours, "", "vpce-1", true},
		"When the endpoint is forgotten already its service should tell":                     {ours, "com.amazonaws.vpce.eu-west-1.vpce-svc-1", "", true},
		"When a record leads to another cluster's endpoint it should stay":                   {theirs, "com.amazonaws.vpce.eu-west-1.vpce-svc-1", "vpce-1", false},
		"When a record leads somewhere else altogether it should stay":                       {"www.example.com", "com.amazonaws.vpce.eu-west-1.vpce-svc-1", "vpce-1", false},
		"When nothing is known of the cluster's endpoint no record should be taken for ours": {ours, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := &dns{vpcs: map[string]string{"Z1": "vpc-1"}, records: map[string]string{"Z1": tc.leadsTo}}
			obj := &hyperv1.AWSEndpointService{}
			obj.Name, obj.Status.EndpointServiceName = "kube-apiserver-private", tc.service
			g.Expect(d.consumer(t).removeRecords(t.Context(), obj, controlPlane(byBalancer), tc.endpoint)).To(Succeed())
			g.Expect(len(d.deleted) == 1).To(Equal(tc.deleted))
		})
	}
	t.Run("When a record has no target it should be nobody's", func(t *testing.T) {
		NewWithT(t).Expect(leadsHere(&types.ResourceRecordSet{}, &hyperv1.AWSEndpointService{}, "vpce-1")).To(BeFalse())
	})
}
