package approver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func requestPEM(t testing.TB, mutate ...func(*x509.CertificateRequest)) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:w-1", Organization: []string{"system:nodes"}}}
	for _, m := range mutate {
		m(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func asBootstrapper(mutate ...func(*Request)) Request {
	r := Request{
		Signer: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: bootstrapUser,
		Groups:  []string{bootstrapGroup, "system:serviceaccounts", "system:authenticated"},
		Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		Created: noon, Content: Content{Key: "of w-1", CommonName: "system:node:w-1", Organizations: []string{"system:nodes"}},
	}
	for _, m := range mutate {
		m(&r)
	}
	return r
}

func serving(mutate ...func(*Request)) Request {
	r := Request{
		Signer: certificatesv1.KubeletServingSignerName, Username: "system:node:w-1", Groups: []string{"system:nodes", "system:authenticated"},
		Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature},
		Created: noon,
		Content: Content{CommonName: "system:node:w-1", Organizations: []string{"system:nodes"}, DNS: []string{"w-1"}, IPs: []string{"10.244.0.7"}},
	}
	for _, m := range mutate {
		m(&r)
	}
	return r
}

func machine(name string, mutate ...func(*Machine)) Machine {
	m := Machine{Name: name, Created: noon.Add(-time.Minute), Names: []string{name + ".local"}, Addresses: []string{"10.244.0.7"}}
	for _, f := range mutate {
		f(&m)
	}
	return m
}

func joined(m *Machine) { m.Node = m.Name }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		facts   Facts
		now     time.Time
		verdict Verdict
		reason  string
	}{
		"When a new machine asks it should get a client certificate": {asBootstrapper(), Facts{Machines: []Machine{machine("w-1")}}, noon, Approve, ReasonMachineMatches},
		"When a machine asks by its host name it should get one": {asBootstrapper(func(r *Request) { r.Content.CommonName = "system:node:w-1.local" }),
			Facts{Machines: []Machine{machine("w-1")}}, noon, Approve, ReasonMachineMatches},
		"When there is no machine yet it should wait":                                 {asBootstrapper(), Facts{Machines: []Machine{machine("w-2")}}, noon, Wait, ReasonMachineNotFound},
		"When there is none for long it should go on waiting":                         {asBootstrapper(), Facts{}, noon.Add(23 * time.Hour), Wait, ReasonMachineNotFound},
		"When two machines have the name it should wait":                              {asBootstrapper(), Facts{Machines: []Machine{machine("w-1"), machine("w-2", func(m *Machine) { m.Names = []string{"w-1"} })}}, noon, Wait, ReasonMachineAmbiguous},
		"When the machine has a node it should leave it to people":                    {asBootstrapper(), Facts{Machines: []Machine{machine("w-1", joined)}}, noon, Wait, ReasonMachineHasNode},
		"When the node exists it should leave it to people":                           {asBootstrapper(), Facts{Machines: []Machine{machine("w-1")}, NodeExists: true}, noon, Wait, ReasonNodeExists},
		"When another key has the machine's certificate it should leave it to people": {asBootstrapper(), Facts{Machines: []Machine{machine("w-1", func(m *Machine) { m.Key = "of another" })}}, noon, Wait, ReasonMachineHasKey},
		"When the same key asks again it should get a certificate":                    {asBootstrapper(), Facts{Machines: []Machine{machine("w-1", func(m *Machine) { m.Key = "of w-1" })}}, noon, Approve, ReasonMachineMatches},
		"When the machine is older than two hours it should leave it to people":       {asBootstrapper(), Facts{Machines: []Machine{machine("w-1", func(m *Machine) { m.Created = noon.Add(-joinWindow - time.Second) })}}, noon, Wait, ReasonMachineTooOld},
		"When the machine is being deleted it should leave it to people":              {asBootstrapper(), Facts{Machines: []Machine{machine("w-1", func(m *Machine) { m.Leaving = true })}}, noon, Wait, ReasonMachineLeaving},
		"When it asks for system:masters it should deny":                              {asBootstrapper(func(r *Request) { r.Content.Organizations = []string{"system:masters"} }), ok, noon, Deny, ReasonSubject},
		"When it asks for system:masters besides it should deny":                      {asBootstrapper(func(r *Request) { r.Content.Organizations = []string{"system:nodes", "system:masters"} }), ok, noon, Deny, ReasonSubject},
		"When it asks as another user it should deny":                                 {asBootstrapper(func(r *Request) { r.Content.CommonName = "system:admin" }), ok, noon, Deny, ReasonSubject},
		"When its name is empty it should deny":                                       {asBootstrapper(func(r *Request) { r.Content.CommonName = "system:node:" }), ok, noon, Deny, ReasonSubject},
		"When its subject has more parts it should deny":                              {asBootstrapper(func(r *Request) { r.Content.OtherSubject = true }), ok, noon, Deny, ReasonSubject},
		"When a client certificate has names it should deny":                          {asBootstrapper(func(r *Request) { r.Content.DNS = []string{"kubernetes.default.svc"} }), ok, noon, Deny, ReasonNames},
		"When a client certificate has addresses it should deny":                      {asBootstrapper(func(r *Request) { r.Content.IPs = []string{"10.244.0.7"} }), ok, noon, Deny, ReasonNames},
		"When it wants to serve with it, too, it should deny":                         {asBootstrapper(func(r *Request) { r.Usages = append(r.Usages, certificatesv1.UsageServerAuth) }), ok, noon, Deny, ReasonUsages},
		"When it wants to sign with it it should deny":                                {asBootstrapper(func(r *Request) { r.Usages = append(r.Usages, certificatesv1.UsageCertSign) }), ok, noon, Deny, ReasonUsages},
		"When its bytes are garbage it should deny":                                   {asBootstrapper(func(r *Request) { _, r.Err = parse([]byte("garbage")) }), ok, noon, Deny, ReasonMalformed},
		"When the bootstrapper asks another signer it should not answer":              {asBootstrapper(func(r *Request) { r.Signer = certificatesv1.KubeAPIServerClientSignerName }), ok, noon, Ignore, ""},
		"When the bootstrapper wants to serve it should deny":                         {asBootstrapper(func(r *Request) { r.Signer = certificatesv1.KubeletServingSignerName }), ok, noon, Deny, ReasonRequestor},
		"When a node asks another signer it should not answer":                        {serving(func(r *Request) { r.Signer = "example.com/any" }), ok, noon, Ignore, ""},
		"When a stranger asks for a node's certificate it should not answer":          {asBootstrapper(func(r *Request) { r.Username = "eve" }), ok, noon, Ignore, ReasonRequestor},
		"When the bootstrapper's groups are missing it should not answer":             {asBootstrapper(func(r *Request) { r.Groups = nil }), ok, noon, Ignore, ReasonRequestor},
		"When a node renews its client certificate it should leave that to others": {serving(func(r *Request) {
			r.Signer = certificatesv1.KubeAPIServerClientKubeletSignerName
		}), ok, noon, Ignore, ""},
		"When somebody asks another signer it should not answer": {asBootstrapper(func(r *Request) { r.Username, r.Signer = "eve", "example.com/any" }), ok, noon, Ignore, ""},

		"When a node asks to serve with its names it should get that":            {serving(), Facts{Machines: []Machine{machine("w-1")}}, noon, Approve, ReasonMachineMatches},
		"When its machine knows the node it should get that, too":                {serving(), Facts{Machines: []Machine{machine("w-1", joined)}}, noon.Add(24 * time.Hour), Approve, ReasonMachineMatches},
		"When it asks for another node it should deny":                           {serving(func(r *Request) { r.Username = "system:node:w-2" }), ok, noon, Deny, ReasonSubject},
		"When it has a foreign address it should wait for the provider":          {serving(func(r *Request) { r.Content.IPs = []string{"10.96.0.1"} }), ok, noon, Wait, ReasonNames},
		"When it has a foreign address for long it should go on waiting":         {serving(func(r *Request) { r.Content.IPs = []string{"10.96.0.1"} }), ok, noon.Add(23 * time.Hour), Wait, ReasonNames},
		"When it has the API's name it should not approve":                       {serving(func(r *Request) { r.Content.DNS = []string{"kubernetes.default.svc"} }), ok, noon, Wait, ReasonNames},
		"When it has loopback it should not approve":                             {serving(func(r *Request) { r.Content.IPs = []string{"10.244.0.7", "127.0.0.1"} }), ok, noon, Wait, ReasonNames},
		"When addresses aren't known it should wait":                             {serving(), Facts{Machines: []Machine{machine("w-1", func(m *Machine) { m.Addresses = nil })}}, noon, Wait, ReasonAddressesUnknown},
		"When it has no names it should deny":                                    {serving(func(r *Request) { r.Content.DNS, r.Content.IPs = nil, nil }), ok, noon, Deny, ReasonNames},
		"When it has e-mail addresses it should deny":                            {serving(func(r *Request) { r.Content.OtherNames = true }), ok, noon, Deny, ReasonNames},
		"When it wants a client's usage it should deny":                          {serving(func(r *Request) { r.Usages[0] = certificatesv1.UsageClientAuth }), ok, noon, Deny, ReasonUsages},
		"When a stranger asks to serve it should not answer":                     {serving(func(r *Request) { r.Username = "eve" }), ok, noon, Ignore, ReasonRequestor},
		"When the name of a node is used without its group it should not answer": {serving(func(r *Request) { r.Groups = []string{"system:authenticated"} }), ok, noon, Ignore, ReasonRequestor},
		"When the machine belongs to another node it should wait":                {serving(), Facts{Machines: []Machine{machine("w-1", func(m *Machine) { m.Node = "w-9" })}}, noon, Wait, ReasonMachineNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide(tc.request, tc.facts, tc.now)
			g.Expect(d.Verdict).To(Equal(tc.verdict), d.Message)
			g.Expect(d.Reason).To(Equal(tc.reason))
			if tc.reason != "" {
				g.Expect(d.Message).NotTo(BeEmpty())
			}
		})
	}
}

var ok = Facts{Machines: []Machine{machine("w-1")}}

// Whatever a request says, it is approved only when it is the truth about a machine.
func TestDecideProperty(t *testing.T) {
	t.Run("When requests are arbitrary only true ones should be approved", rapid.MakeCheck(func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"w-1", "w-2", "w-1.local", "kubernetes", "system:admin", ""})
		ips := rapid.SampledFrom([]string{"10.244.0.7", "10.244.0.8", "127.0.0.1", "172.31.0.1"})
		groups := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"system:nodes", "system:masters", bootstrapGroup}), rapid.ID)
		usages := rapid.SliceOfDistinct(rapid.SampledFrom([]certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth", "server auth", "cert sign", "any"}), rapid.ID)
		r := Request{
			Signer:   rapid.SampledFrom([]string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientSignerName}).Draw(t, "signer"),
			Username: rapid.SampledFrom([]string{bootstrapUser, "system:node:w-1", "system:node:w-2", "eve"}).Draw(t, "username"),
			Groups:   groups.Draw(t, "groups"), Usages: usages.Draw(t, "usages"), Created: noon,
			Content: Content{
				Key:           rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
				CommonName:    rapid.SampledFrom([]string{"system:node:", ""}).Draw(t, "prefix") + names.Draw(t, "name"),
				Organizations: groups.Draw(t, "organizations"),
				DNS:           rapid.SliceOfN(names, 0, 3).Draw(t, "dns"), IPs: rapid.SliceOfN(ips, 0, 3).Draw(t, "ips"),
				OtherSubject: rapid.Bool().Draw(t, "otherSubject"), OtherNames: rapid.Bool().Draw(t, "otherNames"),
			},
		}
		var list []Machine
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"w-1", "w-2", "w-3"}), 0, 3, rapid.ID).Draw(t, "machines") {
			m := machine(n)
			m.Addresses = rapid.SliceOfN(ips, 0, 2).Draw(t, "addresses")
			if rapid.Bool().Draw(t, "joined") {
				m.Node = m.Name
			}
			m.Key = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "key of machine")
			list = append(list, m)
		}
		d := decide(r, Facts{Machines: list, NodeExists: rapid.Bool().Draw(t, "nodeExists")}, noon)
		if d.Verdict == Deny && decide(r, ok, noon).Verdict != Deny {
			t.Fatalf("denied because of what is known of machines: %+v", d)
		}
		if d.Verdict != Approve {
			return
		}
		if !slices.Equal(r.Content.Organizations, []string{"system:nodes"}) || r.Content.OtherSubject || r.Content.OtherNames {
			t.Fatalf("approved subject %+v", r.Content)
		}
		node := strings.TrimPrefix(r.Content.CommonName, "system:node:")
		i := slices.IndexFunc(list, func(m Machine) bool { return m.called(node) })
		if i < 0 || node == r.Content.CommonName {
			t.Fatalf("approved %q without a machine", r.Content.CommonName)
		}
		switch r.Signer {
		case certificatesv1.KubeAPIServerClientKubeletSignerName:
			if r.Username != bootstrapUser || list[i].Node != "" || list[i].Key != "" && list[i].Key != r.Content.Key || len(r.Content.DNS)+len(r.Content.IPs) > 0 || slices.Contains(r.Usages, "server auth") {
				t.Fatalf("approved client request %+v for %+v", r, list[i])
			}
		case certificatesv1.KubeletServingSignerName:
			for _, ip := range r.Content.IPs {
				if !slices.Contains(list[i].Addresses, ip) {
					t.Fatalf("approved foreign address %s", ip)
				}
			}
			if r.Username != r.Content.CommonName || slices.Contains(r.Usages, "client auth") {
				t.Fatalf("approved serving request %+v", r)
			}
		default:
			t.Fatalf("approved for signer %s", r.Signer)
		}
	}))
}

func TestParse(t *testing.T) {
	good := requestPEM(t, func(c *x509.CertificateRequest) {
		c.DNSNames, c.IPAddresses = []string{"w-1"}, []net.IP{net.IPv4(10, 244, 0, 7)}
	})
	t.Run("When a request is well formed it should read it", func(t *testing.T) {
		g := NewWithT(t)
		c, err := parse(good)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Key).To(MatchRegexp("^[0-9a-f]{64}$"))
		c.Key = ""
		g.Expect(c).To(Equal(Content{CommonName: "system:node:w-1", Organizations: []string{"system:nodes"}, DNS: []string{"w-1"}, IPs: []string{"10.244.0.7"}}))
	})
	block, _ := pem.Decode(good)
	forged := slices.Clone(block.Bytes)
	forged[len(forged)-3] ^= 1
	weak := func() []byte {
		key, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	for name, tc := range map[string]struct {
		data []byte
		text string
	}{
		"When it is empty it should say what it isn't":      {nil, "one PEM block"},
		"When it is a certificate it should refuse":         {encode("CERTIFICATE", block.Bytes), "one PEM block"},
		"When there are two it should refuse":               {append(slices.Clone(good), good...), "one PEM block"},
		"When its bytes are garbage it should refuse":       {encode("CERTIFICATE REQUEST", []byte("garbage")), "PKCS #10"},
		"When it is signed by another key it should refuse": {encode("CERTIFICATE REQUEST", forged), "own key"},
		"When it is huge it should refuse":                  {make([]byte, maxRequestBytes+1), "at most"},
		"When it has a wildcard it should refuse":           {requestPEM(t, func(c *x509.CertificateRequest) { c.DNSNames = []string{"*.example.com"} }), "no DNS name"},
		"When it has very many names it should refuse":      {requestPEM(t, func(c *x509.CertificateRequest) { c.DNSNames = slices.Repeat([]string{"a"}, maxNames+1) }), "more than"},
		"When its key is weak it should refuse":             {encode("CERTIFICATE REQUEST", weak()), "1024 bits"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.data)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.text)))
		})
	}
	t.Run("When the subject has parts of its own making it should say so", func(t *testing.T) {
		g := NewWithT(t)
		for _, m := range []func(*x509.CertificateRequest){
			func(c *x509.CertificateRequest) { c.Subject.OrganizationalUnit = []string{"x"} },
			func(c *x509.CertificateRequest) {
				c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:admin"}, {Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "system:node:w-1"}}
			},
		} {
			c, err := parse(requestPEM(t, m))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.OtherSubject).To(BeTrue())
		}
		uri, _ := url.Parse("spiffe://x")
		c, err := parse(requestPEM(t, func(c *x509.CertificateRequest) { c.URIs = []*url.URL{uri} }))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.OtherNames).To(BeTrue())
	})
}

func FuzzParse(f *testing.F) {
	f.Add(requestPEM(f))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse(data)
		if err != nil && strings.ContainsAny(err.Error(), "\n\x00") {
			t.Fatal("the error holds bytes of the request")
		}
		if err == nil && len(c.DNS)+len(c.IPs) > maxNames {
			t.Fatal("too many names")
		}
	})
}

func TestRemedies(t *testing.T) {
	t.Run("When a machine is too old, as after a long pause, it should say what lets it join", func(t *testing.T) {
		old := machine("w-1", func(m *Machine) { m.Created = noon.Add(-joinWindow - time.Second) })
		NewWithT(t).Expect(decide(asBootstrapper(), Facts{Machines: []Machine{old}}, noon).Message).To(Equal(
			"Machine w-1 was created more than 2h0m0s ago: delete the Machine so that it is replaced, or, if this request is from that machine, approve it with kubectl certificate approve"))
	})
}
