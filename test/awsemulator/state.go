package awsemulator

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// looks are how everything is listed, by service: an action of a query protocol, or a path.
var looks = map[string][]string{
	"ec2": strings.Fields(`DescribeVpcs DescribeSubnets DescribeRouteTables DescribeInternetGateways DescribeNatGateways DescribeAddresses
		DescribeDhcpOptions DescribeSecurityGroups DescribeVpcEndpoints DescribeInstances DescribeNetworkInterfaces DescribeNetworkAcls
		DescribeKeyPairs DescribeVolumes DescribeVpcEndpointServiceConfigurations`),
	"elasticloadbalancing": {"DescribeLoadBalancers"},
	"iam":                  strings.Fields("ListRoles ListInstanceProfiles ListOpenIDConnectProviders ListPolicies"),
	"route53":              {"/2013-04-01/hostedzone"},
	"s3":                   {"/"},
}

var versions = map[string]string{"ec2": "2016-11-15", "elasticloadbalancing": "2012-06-01", "iam": "2010-05-08"}

// element is XML of any shape.
type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Nodes   []element `xml:",any"`
}

// State is everything that there is in a region, a line for each object with all its properties, sorted. What AWS still lists although
// it is gone isn't in it.
func (e *Emulator) State(t testing.TB, region string) []string {
	t.Helper()
	var list []string
	for service, actions := range looks {
		for _, action := range actions {
			for _, line := range e.look(t, region, service, action) {
				list = append(list, service+" "+strings.TrimPrefix(action, "/2013-04-01/")+" "+line)
			}
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(list, func(line string) bool { return orphaned(list, line) })
}

var vpcOf = regexp.MustCompile(`vpcId=(vpc-[0-9a-f]+)`)

// orphaned tells what is in a VPC that is gone: AWS removes it with the VPC, moto forgets to.
func orphaned(list []string, line string) bool {
	m := vpcOf.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	return !slices.ContainsFunc(list, func(other string) bool {
		return strings.HasPrefix(other, "ec2 DescribeVpcs ") && strings.Contains(other, "vpcId="+m[1])
	})
}

// Changes are the lines that are in only one of two states, with - if they are gone and + if they came.
func Changes(before, after []string) []string {
	var list []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			list = append(list, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			list = append(list, "+ "+line)
		}
	}
	return list
}

var zonePath = regexp.MustCompile(`Id=/hostedzone/([A-Z0-9]+)`)

func (e *Emulator) look(t testing.TB, region, service, action string) []string {
	t.Helper()
	var body io.Reader
	method, path := http.MethodGet, action
	if !strings.HasPrefix(action, "/") {
		method, path = http.MethodPost, "/"
		body = strings.NewReader(url.Values{"Action": {action}, "Version": {versions[service]}, "Scope": {"Local"}}.Encode())
	}
	request, err := http.NewRequestWithContext(t.Context(), method, e.direct+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=emulated/20260101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	request.Host = service + "." + region + ".amazonaws.com"
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", service, action, err)
	}
	defer answer.Body.Close()
	var root element
	if err := xml.NewDecoder(io.LimitReader(answer.Body, maxState)).Decode(&root); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: HTTP %d, %v", service, action, answer.StatusCode, err)
	}
	var lines []string
	for _, item := range items(root) {
		if line := item.line(); !ended.MatchString(line) {
			lines = append(lines, line)
			if m := zonePath.FindStringSubmatch(line); m != nil && path == "/2013-04-01/hostedzone" {
				for _, record := range e.look(t, region, service, "/2013-04-01/hostedzone/"+m[1]+"/rrset") {
					lines = append(lines, m[1]+" "+record)
				}
			}
		}
	}
	return lines
}

// ended matches what is listed for a while after it is gone.
var ended = regexp.MustCompile(`(^|[ .])(state|instanceState\.name|State|instancesSet\.item\.instanceState\.name)=(deleted|terminated|deleting)( |$)`)

// items are the elements of the first list in an answer.
func items(e element) []element {
	var list []element
	for _, node := range e.Nodes {
		switch node.XMLName.Local {
		case "item", "member", "HostedZone", "ResourceRecordSet", "Bucket":
			list = append(list, node)
		default:
			list = append(list, items(node)...)
		}
	}
	return list
}

// line is an element as path=text pairs.
func (e element) line() string {
	var parts []string
	var walk func(e element, path string)
	walk = func(e element, path string) {
		if len(e.Nodes) == 0 {
			parts = append(parts, fmt.Sprintf("%s=%s", path, strings.TrimSpace(e.Text)))
		}
		for _, node := range e.Nodes {
			walk(node, strings.TrimPrefix(path+"."+node.XMLName.Local, "."))
		}
	}
	walk(e, "")
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
