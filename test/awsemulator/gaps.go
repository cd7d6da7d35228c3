package awsemulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// gaps is the state of what moto can't do.
type gaps struct {
	connections map[string][]Connection
	instances
	sharing
}

// Connection is somebody's endpoint on an endpoint service.
type Connection struct{ Endpoint, State string }

// Connect lets an endpoint be connected to an endpoint service, as DescribeVpcEndpointConnections tells.
func (r *Recorder) Connect(service string, c Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gaps.connections == nil {
		r.gaps.connections = map[string][]Connection{}
	}
	r.gaps.connections[service] = append(r.gaps.connections[service], c)
}

type callKey struct{}

func withCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, callState{c})
}

type callState struct{ Call }

// fill answers what moto doesn't know.
func (r *Recorder) fill(w *capture, req *http.Request, c Call) bool {
	switch c.String() {
	case "ec2:DescribeVpcEndpointConnections":
		r.describeConnections(w, c)
	case "ec2:RejectVpcEndpointConnections":
		r.rejectConnections(w, c)
	case "ec2:RunInstances":
		return r.launchedBefore(w, c)
	case "ec2:CreateTags":
		return r.tagShared(w, req, c)
	case "ec2:ModifyInstanceMetadataOptions":
		r.modifyMetadata(w, c)
	case "route53:CreateVPCAssociationAuthorization":
		id := strings.Split(strings.TrimPrefix(req.URL.Path, "/2013-04-01/hostedzone/"), "/")[0]
		r.mu.Lock()
		if r.gaps.zones == nil {
			r.gaps.zones = map[string]bool{}
		}
		r.gaps.zones[id] = true
		r.mu.Unlock()
		w.header.Set("Content-Type", "text/xml")
		fmt.Fprintf(&w.body, `<CreateVPCAssociationAuthorizationResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><HostedZoneId>%s</HostedZoneId></CreateVPCAssociationAuthorizationResponse>`, id)
	default:
		return false
	}
	return true
}

// values are a request's parameters whose names match, in order.
func values(params url.Values, name *regexp.Regexp) []string {
	var keys, list []string
	for key := range params {
		if name.MatchString(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		list = append(list, params.Get(key))
	}
	return list
}

var (
	filterValue = regexp.MustCompile(`^Filter\.\d+\.Value\.\d+$`)
	endpointIDs = regexp.MustCompile(`^VpcEndpointId\.\d+$`)
)

func (r *Recorder) describeConnections(w *capture, c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.header.Set("Content-Type", "text/xml")
	w.body.WriteString(`<DescribeVpcEndpointConnectionsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><vpcEndpointConnectionSet>`)
	for _, service := range values(c.Params, filterValue) {
		for _, connection := range r.gaps.connections[service] {
			fmt.Fprintf(&w.body, "<item><serviceId>%s</serviceId><vpcEndpointId>%s</vpcEndpointId><vpcEndpointState>%s</vpcEndpointState></item>",
				service, connection.Endpoint, connection.State)
		}
	}
	w.body.WriteString(`</vpcEndpointConnectionSet></DescribeVpcEndpointConnectionsResponse>`)
}

func (r *Recorder) rejectConnections(w *capture, c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := values(c.Params, endpointIDs)
	service := c.Params.Get("ServiceId")
	for i, connection := range r.gaps.connections[service] {
		if slices.Contains(ids, connection.Endpoint) {
			r.gaps.connections[service][i].State = "rejected"
		}
	}
	w.header.Set("Content-Type", "text/xml")
	w.body.WriteString(`<RejectVpcEndpointConnectionsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><unsuccessful/></RejectVpcEndpointConnectionsResponse>`)
}

// repair puts moto's answers right.
func (r *Recorder) repair(answer *http.Response) error {
	state, ok := answer.Request.Context().Value(callKey{}).(callState)
	if !ok || answer.StatusCode != http.StatusOK {
		return nil
	}
	switch state.String() {
	case "ec2:CreateDhcpOptions":
		return r.tagDHCP(answer, state.Call)
	case "route53:ListResourceRecordSets":
		return rewrite(answer, repairSOA)
	case "ec2:RunInstances":
		return rewrite(answer, func(raw []byte) []byte { return r.launched(state.Call, raw) })
	case "ec2:DescribeInstances":
		return rewrite(answer, r.described)
	case "ec2:DescribeSubnets":
		if answer.Request.Header.Get(accountHeader) == Owner && !accessKey.MatchString(answer.Request.Header.Get("Authorization")) {
			return rewrite(answer, r.ownTags)
		}
	}
	return nil
}

func rewrite(answer *http.Response, change func([]byte) []byte) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxState))
	if err != nil {
		return err
	}
	answer.Body.Close()
	raw = change(raw)
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	answer.ContentLength = int64(len(raw))
	answer.Header.Set("Content-Length", fmt.Sprint(len(raw)))
	return nil
}

// brokenSOA is a record's value as moto shows it until somebody sets one: the text of a dictionary.
var brokenSOA = regexp.MustCompile(`\{'Value': '([^']*)'\}`)

func repairSOA(raw []byte) []byte { return brokenSOA.ReplaceAll(raw, []byte("$1")) }

var (
	dhcpID  = regexp.MustCompile(`<dhcpOptionsId>(dopt-[0-9a-f]+)</dhcpOptionsId>`)
	tagPart = regexp.MustCompile(`^TagSpecification\.1\.(Tag\.\d+\.(Key|Value))$`)
)

// tagDHCP gives DHCP options the tags of the call that made them, which moto drops.
func (r *Recorder) tagDHCP(answer *http.Response, c Call) error {
	var id string
	if err := rewrite(answer, func(raw []byte) []byte {
		if m := dhcpID.FindSubmatch(raw); m != nil {
			id = string(m[1])
		}
		return raw
	}); err != nil || id == "" {
		return err
	}
	form := url.Values{"Action": {"CreateTags"}, "Version": {c.Params.Get("Version")}, "ResourceId.1": {id}}
	for key := range c.Params {
		if m := tagPart.FindStringSubmatch(key); m != nil {
			form.Set(m[1], c.Params.Get(key))
		}
	}
	request, err := http.NewRequestWithContext(answer.Request.Context(), http.MethodPost, r.direct+"/", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", answer.Request.Header.Get("Authorization"))
	if account := answer.Request.Header.Get(accountHeader); account != "" {
		request.Header.Set(accountHeader, account)
	}
	request.Header.Set("Host", answer.Request.Host)
	tagged, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer tagged.Body.Close()
	if tagged.StatusCode != http.StatusOK {
		return fmt.Errorf("tagging DHCP options: HTTP %d", tagged.StatusCode)
	}
	return nil
}
