package awsemulator

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// instances is what moto doesn't keep of them.
type instances struct {
	// launches are answers to RunInstances by the token of the client: AWS gives the same one to a request that is sent again.
	launches map[string][]byte
	// metadata are the settings of the service of that name, by instance and parameter.
	metadata map[string]map[string]string
}

// launchedBefore answers a request that is sent again as it was answered.
func (r *Recorder) launchedBefore(w *capture, c Call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := r.gaps.launches[c.Params.Get("ClientToken")]
	if answer == nil {
		return false
	}
	w.header.Set("Content-Type", "text/xml")
	w.body.Write(answer)
	return true
}

var instanceID = regexp.MustCompile(`<instanceId>(i-[0-9a-f]+)</instanceId>`)

// settings of the metadata service: parameters, how they are called in answers, and what AWS takes when nothing is said.
var settings = [][3]string{
	{"HttpTokens", "httpTokens", "optional"}, {"HttpPutResponseHopLimit", "httpPutResponseHopLimit", "1"}, {"HttpEndpoint", "httpEndpoint", "enabled"},
	{"HttpProtocolIpv6", "httpProtocolIpv6", "disabled"}, {"InstanceMetadataTags", "instanceMetadataTags", "disabled"},
}

// launched remembers an answer, and what moto forgets of the request.
func (r *Recorder) launched(c Call, answer []byte) []byte {
	answer = named(answer)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gaps.launches == nil {
		r.gaps.launches, r.gaps.metadata = map[string][]byte{}, map[string]map[string]string{}
	}
	for _, m := range instanceID.FindAllSubmatch(answer, -1) {
		options := map[string]string{}
		for _, s := range settings {
			options[s[0]] = cmp.Or(c.Params.Get("MetadataOptions."+s[0]), s[2])
		}
		r.gaps.metadata[string(m[1])] = options
	}
	if token := c.Params.Get("ClientToken"); token != "" {
		r.gaps.launches[token] = answer
	}
	return answer
}

func (r *Recorder) modifyMetadata(w *capture, c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := c.Params.Get("InstanceId")
	for _, s := range settings {
		if options, value := r.gaps.metadata[id], c.Params.Get(s[0]); options != nil && value != "" {
			options[s[0]] = value
		}
	}
	w.header.Set("Content-Type", "text/xml")
	fmt.Fprintf(&w.body, `<ModifyInstanceMetadataOptionsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId><instanceId>%s</instanceId></ModifyInstanceMetadataOptionsResponse>`, id)
}

var (
	// ofInterface is where a network interface says which address it has; an instance itself has no MAC address.
	ofInterface = regexp.MustCompile(`<macAddress>[^<]*</macAddress>\s*<privateIpAddress>([0-9.]+)</privateIpAddress>`)
	ofInstance  = regexp.MustCompile(`<privateDnsName>(ip-[0-9-]+)\.([^<]+)</privateDnsName>`)
)

// named gives network interfaces the names that AWS tells of them, by which the provider knows what a node will be called: those of their instances.
func named(raw []byte) []byte {
	domains := map[string]string{}
	for _, m := range ofInstance.FindAllSubmatch(raw, -1) {
		domains[string(m[1])] = string(m[2])
	}
	return ofInterface.ReplaceAllFunc(raw, func(element []byte) []byte {
		name := "ip-" + strings.ReplaceAll(string(ofInterface.FindSubmatch(element)[1]), ".", "-")
		if domains[name] == "" {
			return element
		}
		return fmt.Appendf(slices.Clip(element), "<privateDnsName>%s.%s</privateDnsName>", name, domains[name])
	})
}

// described adds what moto leaves out.
func (r *Recorder) described(raw []byte) []byte {
	raw = named(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	return instanceID.ReplaceAllFunc(raw, func(element []byte) []byte {
		options := r.gaps.metadata[string(instanceID.FindSubmatch(element)[1])]
		if options == nil {
			return element
		}
		text := string(element) + "<metadataOptions><state>applied</state>"
		for _, s := range settings {
			text += "<" + s[1] + ">" + options[s[0]] + "</" + s[1] + ">"
		}
		return []byte(text + "</metadataOptions>")
	})
}
