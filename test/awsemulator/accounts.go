package awsemulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

const (
	// Account is whose everything is.
	Account = "123456789012"
	// Owner is another account: who signs with it as access key is of it.
	Owner = "210987654321"
	// accountHeader chooses moto's account.
	accountHeader = "X-Moto-Account-Id"
)

// sharing is what the account uses of the other's.
type sharing struct {
	// subnets are those that are shared, with the tags that they have in the account that uses them: tags don't cross accounts.
	subnets map[string]map[string]string
	// zones are those that the other account may put on its VPCs.
	zones map[string]bool
}

var (
	accessKey   = regexp.MustCompile(`Credential=([0-9]{12})/`)
	subnetIDs   = regexp.MustCompile(`^SubnetId\.\d+$`)
	resourceIDs = regexp.MustCompile(`^ResourceId\.\d+$`)
	tagKeys     = regexp.MustCompile(`^Tag\.\d+\.Key$`)
	sharedARN   = regexp.MustCompile(`:subnet/(subnet-[0-9a-f]+)$`)
	zoneInPath  = regexp.MustCompile(`/hostedzone/([A-Z0-9]+)/`)
	taggedItem  = regexp.MustCompile(`(?s)(<subnetId>(subnet-[0-9a-f]+)</subnetId>.*?)<tagSet>.*?</tagSet>`)
)

// asWhom is the account that a call is carried out in. What one account may do with the other's is carried out in the other.
func (r *Recorder) asWhom(req *http.Request, c Call) string {
	account := Account
	if m := accessKey.FindStringSubmatch(req.Header.Get("Authorization")); m != nil {
		account = m[1]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case account == Account && c.String() == "ec2:DescribeSubnets" && r.gaps.allShared(values(c.Params, subnetIDs)):
		return Owner
	case account == Owner && c.String() == "route53:AssociateVPCWithHostedZone":
		if m := zoneInPath.FindStringSubmatch(req.URL.Path); m != nil && r.gaps.zones[m[1]] {
			return Account
		}
	}
	return account
}

func (s *sharing) allShared(ids []string) bool {
	return len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return s.subnets[id] == nil })
}

// share notes the subnets of a resource share.
func (r *Recorder) share(c Call, body []byte) {
	if c.String() != "ram:CreateResourceShare" {
		return
	}
	var asked struct {
		ResourceArns, Principals []string
	}
	if json.Unmarshal(body, &asked) != nil || !slices.Contains(asked.Principals, Account) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gaps.subnets == nil {
		r.gaps.subnets = map[string]map[string]string{}
	}
	for _, arn := range asked.ResourceArns {
		if m := sharedARN.FindStringSubmatch(arn); m != nil && r.gaps.subnets[m[1]] == nil {
			r.gaps.subnets[m[1]] = map[string]string{}
		}
	}
}

// tagShared answers a call that tags shared subnets in the account that uses them.
func (r *Recorder) tagShared(w *capture, req *http.Request, c Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := values(c.Params, resourceIDs)
	if accessKey.MatchString(req.Header.Get("Authorization")) || !r.gaps.allShared(ids) {
		return false
	}
	for key := range c.Params {
		if tagKeys.MatchString(key) {
			for _, id := range ids {
				r.gaps.subnets[id][c.Params.Get(key)] = c.Params.Get(strings.TrimSuffix(key, "Key") + "Value")
			}
		}
	}
	w.header.Set("Content-Type", "text/xml")
	w.body.WriteString(`<CreateTagsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><return>true</return></CreateTagsResponse>`)
	return true
}

// ownTags shows the tags that shared subnets have in the account that uses them.
func (r *Recorder) ownTags(raw []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return taggedItem.ReplaceAllFunc(raw, func(item []byte) []byte {
		m := taggedItem.FindSubmatch(item)
		text := string(m[1]) + "<tagSet>"
		have := r.gaps.subnets[string(m[2])]
		for _, key := range slices.Sorted(maps.Keys(have)) {
			text += fmt.Sprintf("<item><key>%s</key><value>%s</value></item>", key, have[key])
		}
		return []byte(text + "</tagSet>")
	})
}
