package approver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Verdict is what happens to a request.
type Verdict string

// Verdicts.
const (
	Approve Verdict = "Approve"
	Deny    Verdict = "Deny"
	Wait    Verdict = "Wait"   // it may become right, or a person may approve it
	Ignore  Verdict = "Ignore" // not ours
)

// Reasons of decisions. They are in the condition of a request, or in an Event on it.
const (
	ReasonMachineMatches   = "MachineMatches"
	ReasonMalformed        = "MalformedRequest"
	ReasonRequestor        = "RequestorNotAllowed"
	ReasonUsages           = "UsagesNotAllowed"
	ReasonSubject          = "SubjectNotAllowed"
	ReasonNames            = "NamesNotAllowed"
	ReasonMachineNotFound  = "MachineNotFound"
	ReasonMachineAmbiguous = "MachineAmbiguous"
	ReasonMachineTooOld    = "MachineTooOld"
	ReasonMachineHasNode   = "MachineHasNode"
	ReasonMachineHasKey    = "MachineHasCertificate"
	ReasonMachineLeaving   = "MachineLeaving"
	ReasonNodeExists       = "NodeExists"
	ReasonAddressesUnknown = "AddressesUnknown"
)

// Decision is a verdict with the reason that is recorded for it. The message is in our words; names and addresses of the
// request in it are bounded and were checked to be printable.
type Decision struct {
	Verdict Verdict
	Reason  string
	Message string
}

// Machine is what is known of a Machine of the hosted cluster.
type Machine struct {
	Name    string
	Node    string // of status.nodeRef; empty before the node has joined
	Created time.Time
	Leaving bool
	// Key is the public key that has a client certificate, as in Content; empty before the first.
	Key string
	// Version of the Machine that this was read from.
	Version string
	// Names are what the machine is called: its host names and internal DNS names. Addresses are its IP addresses, in the form
	// of netip.Addr.
	Names     []string
	Addresses []string
}

// called reports whether a node of that name is this machine.
func (m Machine) called(node string) bool {
	if m.Node != "" {
		return m.Node == node
	}
	return m.Name == node || slices.Contains(m.Names, node)
}

// Facts are what a request is compared with.
type Facts struct {
	Machines []Machine
	// NodeExists tells for the node that a request names whether there is one already.
	NodeExists bool
}

// Request is a request with what its bytes mean.
type Request struct {
	Signer   string
	Username string
	Groups   []string
	Usages   []certificatesv1.KeyUsage
	Created  time.Time
	Content  Content
	Err      error // why the bytes mean nothing
}

// ours tells whether the request is for us to decide: it is for a kubelet's certificate. Nodes renew client certificates without us, and
// what programs on nodes want of other signers is decided by those who brought them.
func (r Request) ours() bool {
	switch r.Signer {
	case certificatesv1.KubeletServingSignerName:
		return true
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return !r.isNode()
	default:
		return false
	}
}

func (r Request) isNode() bool {
	return strings.HasPrefix(r.Username, nodePrefix) && slices.Contains(r.Groups, nodesGroup)
}

// node is the node that the request is for, as far as its bytes say; only meaningful for requests of the two signers.
func (r Request) node() string { return strings.TrimPrefix(r.Content.CommonName, nodePrefix) }

// decide never approves what any rule is against. It approves a client certificate only for a machine that has no node, for one
// key, and only with the name of that machine; a serving certificate only for the node that asks, and only with names and
// addresses of its own machine. It never denies because of what is known of Machines.
func decide(r Request, facts Facts, now time.Time) Decision {
	if !r.ours() {
		return Decision{Verdict: Ignore}
	}
	rules := clientRules
	if r.Signer == certificatesv1.KubeletServingSignerName {
		rules = servingRules
	}
	c := &candidate{Request: r, facts: facts, now: now}
	for _, rule := range rules {
		if d := rule(c); d != nil {
			return *d
		}
	}
	return Decision{Approve, ReasonMachineMatches, fmt.Sprintf("names and addresses are those of Machine %s", c.machine.Name)}
}

// candidate is a request on its way through the rules.
type candidate struct {
	Request
	facts   Facts
	now     time.Time
	machine Machine // set by machineKnown
}

// rule gives a decision when the request goes against it, else nil.
type rule func(*candidate) *Decision

var clientRules = []rule{
	askedByBootstrapper, wellFormed, usagesOf("client auth"), subjectIsNode, hasNoNames,
	machineKnown, machineStays, machineIsNew, keyIsMachines, nodeIsNew,
}

var servingRules = []rule{
	askedByNode, wellFormed, usagesOf("server auth"), subjectIsNode, subjectIsRequestor, hasOwnNamesOnly,
	machineKnown, machineStays, namesAreMachines,
}

func deny(reason, format string, args ...any) *Decision {
	return &Decision{Deny, reason, fmt.Sprintf(format, args...)}
}

func wait(reason, format string, args ...any) *Decision {
	return &Decision{Wait, reason, fmt.Sprintf(format, args...)}
}

func askedByBootstrapper(c *candidate) *Decision {
	if c.Username != bootstrapUser || !slices.Contains(c.Groups, bootstrapGroup) {
		// Not denied: an administrator of the hosted cluster may have reasons, and may approve it.
		return &Decision{Ignore, ReasonRequestor, "first certificates of nodes are approved for the node-bootstrapper only"}
	}
	return nil
}

func askedByNode(c *candidate) *Decision {
	switch {
	case c.Username == bootstrapUser:
		return deny(ReasonRequestor, "the node-bootstrapper may ask for client certificates only")
	case !c.isNode():
		return &Decision{Ignore, ReasonRequestor, "serving certificates of kubelets are approved for their own nodes only"}
	}
	return nil
}

func wellFormed(c *candidate) *Decision {
	if c.Err != nil {
		return deny(ReasonMalformed, "%v", c.Err)
	}
	return nil
}

// usagesOf allows digital signature and one purpose; RSA keys may also encipher keys.
func usagesOf(purpose certificatesv1.KeyUsage) rule {
	return func(c *candidate) *Decision {
		want := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, purpose}
		have := slices.Compact(slices.Sorted(slices.Values(c.Usages)))
		have = slices.DeleteFunc(have, func(u certificatesv1.KeyUsage) bool { return u == certificatesv1.UsageKeyEncipherment })
		slices.Sort(want)
		if !slices.Equal(have, want) {
			return deny(ReasonUsages, "usages must be digital signature and %s", purpose)
		}
		return nil
	}
}

func subjectIsNode(c *candidate) *Decision {
	if !slices.Equal(c.Content.Organizations, []string{nodesGroup}) || c.Content.OtherSubject {
		return deny(ReasonSubject, "the subject must be of organization %s and nothing else", nodesGroup)
	}
	if !strings.HasPrefix(c.Content.CommonName, nodePrefix) || !isName(c.node()) {
		return deny(ReasonSubject, "the common name must be %s and the name of a node", nodePrefix)
	}
	return nil
}

func subjectIsRequestor(c *candidate) *Decision {
	if c.Content.CommonName != c.Username {
		return deny(ReasonSubject, "a node may ask for its own certificate only")
	}
	return nil
}

func hasNoNames(c *candidate) *Decision {
	if len(c.Content.DNS)+len(c.Content.IPs) > 0 || c.Content.OtherNames {
		return deny(ReasonNames, "a client certificate has no names and addresses")
	}
	return nil
}

func hasOwnNamesOnly(c *candidate) *Decision {
	if c.Content.OtherNames {
		return deny(ReasonNames, "a serving certificate has DNS names and IP addresses only")
	}
	if len(c.Content.DNS)+len(c.Content.IPs) == 0 {
		return deny(ReasonNames, "a serving certificate must have names or addresses")
	}
	return nil
}

func machineKnown(c *candidate) *Decision {
	var found []Machine
	for _, m := range c.facts.Machines {
		if m.called(c.node()) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return wait(ReasonMachineNotFound, "there is no Machine %s", c.node())
	case 1:
		c.machine = found[0]
		return nil
	default:
		slices.SortFunc(found, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
		return wait(ReasonMachineAmbiguous, "Machines %s and %s are both called %s", found[0].Name, found[1].Name, c.node())
	}
}

func machineStays(c *candidate) *Decision {
	if c.machine.Leaving {
		return wait(ReasonMachineLeaving, "Machine %s is being deleted", c.machine.Name)
	}
	return nil
}

func machineIsNew(c *candidate) *Decision {
	switch {
	case c.machine.Node != "":
		return wait(ReasonMachineHasNode, "Machine %s has joined already", c.machine.Name)
	case c.now.Sub(c.machine.Created) > joinWindow:
		return wait(ReasonMachineTooOld, "Machine %s was created more than %s ago: delete the Machine so that it is replaced, or, if this request is from that machine, "+
			"approve it with kubectl certificate approve", c.machine.Name, joinWindow)
	}
	return nil
}

// keyIsMachines lets nobody else have a certificate in the name of a machine between its request and its Node.
func keyIsMachines(c *candidate) *Decision {
	if c.machine.Key != "" && c.machine.Key != c.Content.Key {
		return wait(ReasonMachineHasKey, "a client certificate of Machine %s was approved for another key; a machine that lost its certificate has to be replaced", c.machine.Name)
	}
	return nil
}

func nodeIsNew(c *candidate) *Decision {
	if c.facts.NodeExists {
		return wait(ReasonNodeExists, "Node %s exists; a machine that lost its certificate has to be replaced", c.node())
	}
	return nil
}

// namesAreMachines waits for addresses that a provider has yet to report.
func namesAreMachines(c *candidate) *Decision {
	m := c.machine
	var foreign []string
	for _, name := range c.Content.DNS {
		if name != c.node() && name != m.Name && !slices.Contains(m.Names, name) {
			foreign = append(foreign, name)
		}
	}
	for _, ip := range c.Content.IPs {
		if !slices.Contains(m.Addresses, ip) {
			foreign = append(foreign, ip)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	if len(m.Addresses) == 0 {
		return wait(ReasonAddressesUnknown, "the addresses of Machine %s aren't known yet", m.Name)
	}
	more := ""
	if n := len(foreign) - maxListed; n > 0 {
		foreign, more = foreign[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return wait(ReasonNames, "not of Machine %s: %s%s", m.Name, strings.Join(foreign, ", "), more)
}
