package policy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Table is the name of our tables in nftables, one of family inet and one of family bridge.
const Table = "hypershift_policy"

// Frames is a script for nft that keeps everything but IPv4 from going from pod to pod: IPv6 between link-local addresses, for one, would pass the bridge
// without being looked at.
const Frames = "table bridge " + Table + " {}\ndelete table bridge " + Table + "\n" +
	"table bridge " + Table + " {\n  chain frames {\n    type filter hook forward priority 0;\n    ether type != { ip, arp } drop\n  }\n}\n"

// priority is after the chain that answers for unknown Services, so that their clients are told so.
const priority = 1

// Pod is a pod with an address of its own.
type Pod struct {
	Namespace, Name string
	Address         netip.Addr
	Created         time.Time // of two pods with one address the older is about to go
	Labels          map[string]string
	Ports           []corev1.ContainerPort // those with a name
}

// State is what the rules follow from.
type State struct {
	Pods       []Pod
	Namespaces map[string]map[string]string // labels by name
	Policies   []*networkingv1.NetworkPolicy
}

// Rules is a script for nft that replaces our tables. The same state, in any order, gives the same text. An error names a policy that can't be understood;
// what it selects is denied then, as if it allowed nothing.
func Rules(s State) (string, []error) {
	c := compiler{State: s, chains: map[string]string{}}
	c.Pods = slices.CompactFunc(slices.SortedFunc(slices.Values(c.Pods), func(a, b Pod) int {
		return cmp.Or(a.Address.Compare(b.Address), b.Created.Compare(a.Created), strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	}), func(a, b Pod) bool { return a.Address == b.Address })
	c.Policies = slices.SortedFunc(slices.Values(c.Policies), func(a, b *networkingv1.NetworkPolicy) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	into, outOf, self := c.verdicts(networkingv1.PolicyTypeIngress), c.verdicts(networkingv1.PolicyTypeEgress), c.self()
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %[1]s {}\ndelete table inet %[1]s\ntable inet %[1]s {\n", Table)
	for _, body := range slices.SortedFunc(maps.Keys(c.chains), func(a, b string) int { return strings.Compare(c.chains[a], c.chains[b]) }) {
		fmt.Fprintf(&b, "  chain %s {\n%s    meta l4proto tcp reject with tcp reset\n    reject with icmp type admin-prohibited\n  }\n", c.chains[body], body)
	}
	established := "    ct state established,related accept\n"
	// A pod that calls its own Service gets through.
	fmt.Fprintf(&b, "  chain pods {\n    type filter hook forward priority %d;\n%s%s%s%s  }\n", priority, established, self, outOf, into)
	fmt.Fprintf(&b, "  chain machine {\n    type filter hook input priority %d;\n%s%s  }\n}\n", priority, established, outOf)
	return b.String(), c.errs
}

type compiler struct {
	State
	chains map[string]string // name by body
	errs   []error
}

// self accepts what isolated pods send to themselves.
func (c *compiler) self() string {
	var pairs []string
	for _, pod := range c.Pods {
		pairs = append(pairs, fmt.Sprintf("%[1]s . %[1]s", pod.Address))
	}
	if len(pairs) == 0 {
		return ""
	}
	return fmt.Sprintf("    ip saddr . ip daddr { %s } accept\n", strings.Join(pairs, ", "))
}

// verdicts sends packets of isolated pods to the chain of their policies: by the destination for ingress, by the source for egress.
func (c *compiler) verdicts(direction networkingv1.PolicyType) string {
	var entries []string
	for _, pod := range c.Pods {
		body, isolated := c.body(pod, direction)
		if !isolated {
			continue
		}
		chain, ok := c.chains[body]
		if !ok {
			chain = fmt.Sprintf("rules_%d", len(c.chains))
			c.chains[body] = chain
		}
		entries = append(entries, fmt.Sprintf("%s : jump %s", pod.Address, chain))
	}
	if len(entries) == 0 {
		return ""
	}
	field := "daddr"
	if direction == networkingv1.PolicyTypeEgress {
		field = "saddr"
	}
	return fmt.Sprintf("    ip %s vmap { %s }\n", field, strings.Join(entries, ", "))
}

// body is what the policies of a pod let through, and whether there are any. Each line ends with return: the next direction is still to be looked at.
func (c *compiler) body(pod Pod, direction networkingv1.PolicyType) (body string, isolated bool) {
	lines := map[string]bool{}
	for _, p := range c.Policies {
		if p.Namespace != pod.Namespace || !slices.Contains(typesOf(p), direction) {
			continue
		}
		selected, err := matches(&p.Spec.PodSelector, pod.Labels)
		if err != nil {
			c.errs = append(c.errs, fmt.Errorf("NetworkPolicy %s/%s: podSelector: %w", p.Namespace, p.Name, err))
			continue
		}
		if !selected {
			continue
		}
		isolated = true
		if direction == networkingv1.PolicyTypeIngress {
			for _, r := range p.Spec.Ingress {
				c.allow(lines, p, "saddr", r.From, func(Pod) []string { return portMatches(r.Ports, pod) })
			}
			continue
		}
		for _, r := range p.Spec.Egress {
			c.allow(lines, p, "daddr", r.To, func(to Pod) []string { return portMatches(r.Ports, to) })
		}
	}
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString("    " + line + "\n")
	}
	return b.String(), isolated
}

// typesOf are the directions that a policy is about; the API server fills them in.
func typesOf(p *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	if len(p.Spec.PolicyTypes) > 0 {
		return p.Spec.PolicyTypes
	}
	types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(p.Spec.Egress) > 0 {
		types = append(types, networkingv1.PolicyTypeEgress)
	}
	return types
}

// allow adds the lines of one rule. ports gives what a rule says of ports, in which names are those of the pod that is called.
func (c *compiler) allow(lines map[string]bool, p *networkingv1.NetworkPolicy, field string, peers []networkingv1.NetworkPolicyPeer, ports func(Pod) []string) {
	add := func(match string, ports []string) {
		for _, port := range ports {
			lines[strings.Join(strings.Fields(match+" "+port+" return"), " ")] = true
		}
	}
	if len(peers) == 0 {
		add("", ports(Pod{}))
		return
	}
	byPorts := map[string][]string{} // addresses of pods by what may be called of them
	for _, peer := range peers {
		if peer.IPBlock != nil {
			if match := block(field, peer.IPBlock); match != "" {
				add(match, ports(Pod{}))
			}
			continue
		}
		for _, other := range c.Pods {
			is, err := c.isPeer(p.Namespace, peer, other)
			if err != nil {
				c.errs = append(c.errs, fmt.Errorf("NetworkPolicy %s/%s: %w", p.Namespace, p.Name, err))
				break
			}
			if is {
				key := strings.Join(ports(other), "\n")
				byPorts[key] = append(byPorts[key], other.Address.String())
			}
		}
	}
	for key, addresses := range byPorts {
		if key == "" && len(ports(Pod{})) == 0 {
			continue // a rule with ports of which these pods have none
		}
		slices.Sort(addresses)
		add(fmt.Sprintf("ip %s { %s }", field, strings.Join(slices.Compact(addresses), ", ")), strings.Split(key, "\n"))
	}
}

// isPeer tells whether a peer of a policy of namespace selects a pod.
func (c *compiler) isPeer(namespace string, peer networkingv1.NetworkPolicyPeer, pod Pod) (bool, error) {
	if peer.NamespaceSelector == nil {
		if pod.Namespace != namespace {
			return false, nil
		}
	} else if is, err := matches(peer.NamespaceSelector, c.Namespaces[pod.Namespace]); err != nil || !is {
		return false, err
	}
	if peer.PodSelector == nil {
		return true, nil
	}
	return matches(peer.PodSelector, pod.Labels)
}

func matches(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err
	}
	return s.Matches(labels.Set(set)), nil
}

// block matches a range of addresses; one that is not of IPv4 matches nothing.
func block(field string, b *networkingv1.IPBlock) string {
	prefix, err := netip.ParsePrefix(b.CIDR)
	if err != nil || !prefix.Addr().Is4() {
		return ""
	}
	match := ""
	if prefix.Bits() > 0 {
		match = fmt.Sprintf("ip %s %s", field, prefix.Masked())
	}
	var except []string
	for _, e := range b.Except {
		if p, err := netip.ParsePrefix(e); err == nil && p.Addr().Is4() {
			except = append(except, p.Masked().String())
		}
	}
	if len(except) > 0 {
		match += fmt.Sprintf(" ip %s != { %s }", field, strings.Join(except, ", "))
	}
	if match == "" {
		return "meta nfproto ipv4"
	}
	return match
}

// portMatches is one match for each protocol; no ports at all match everything. A name that the pod has not matches nothing.
func portMatches(ports []networkingv1.NetworkPolicyPort, pod Pod) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	byProtocol := map[string][]string{}
	for _, p := range ports {
		protocol := "tcp"
		if p.Protocol != nil {
			protocol = strings.ToLower(string(*p.Protocol))
		}
		switch {
		case p.Port == nil:
			byProtocol[protocol] = append(byProtocol[protocol], "0-65535")
		case p.Port.StrVal != "":
			for _, named := range pod.Ports {
				if named.Name == p.Port.StrVal && strings.EqualFold(string(named.Protocol), protocol) {
					byProtocol[protocol] = append(byProtocol[protocol], fmt.Sprint(named.ContainerPort))
				}
			}
		case p.EndPort != nil && *p.EndPort > p.Port.IntVal:
			byProtocol[protocol] = append(byProtocol[protocol], fmt.Sprintf("%d-%d", p.Port.IntVal, *p.EndPort))
		default:
			byProtocol[protocol] = append(byProtocol[protocol], fmt.Sprint(p.Port.IntVal))
		}
	}
	var out []string
	for _, protocol := range slices.Sorted(maps.Keys(byProtocol)) {
		numbers := slices.Compact(slices.Sorted(slices.Values(byProtocol[protocol])))
		if slices.Contains(numbers, "0-65535") {
			out = append(out, "meta l4proto "+protocol)
			continue
		}
		out = append(out, fmt.Sprintf("%s dport { %s }", protocol, strings.Join(numbers, ", ")))
	}
	return out
}
