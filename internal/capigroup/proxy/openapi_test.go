package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"hcp.internal/platform/internal/capigroup/translate"
)

// document is what of OpenAPI v2 differs between the ways.
type document struct {
	Paths, Definitions map[string]json.RawMessage
	Parameters         map[string]json.RawMessage
}

const openAPIProtobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

// ofThePlatform tells what the proxy hides: here that is what is stored in the standard group, which the direct client has, and the other way round.
func ofThePlatform(name string) bool {
	return strings.Contains(name, translate.Private+"/") || strings.HasPrefix(name, "io.openshift.hypershift.cluster.")
}

// TestOpenAPI asks for the document of all types, as old kubectl explains and clients that check objects themselves do.
func TestOpenAPI(t *testing.T) {
	both := views(t)
	read := func(g Gomega, v view) document {
		code, _, body := v.ask(t, request{"GET", "/openapi/v2", "", "", jsonType})
		g.Expect(code).To(Equal(200))
		var doc document
		g.Expect(json.Unmarshal([]byte(body), &doc)).To(Succeed())
		return doc
	}
	var direct, proxied document
	// Documents are put together a while after definitions are there.
	NewWithT(t).Eventually(func(g Gomega) {
		direct, proxied = read(g, both[0]), read(g, both[1])
		for _, name := range []string{"io.x-k8s.cluster.v1beta2.Machine", "io.openshift.hypershift.cluster.v1beta2.Machine"} {
			g.Expect(direct.Definitions[name]).NotTo(BeEmpty(), name)
		}
		g.Expect(proxied.Definitions["io.x-k8s.cluster.v1beta2.Machine"]).NotTo(BeEmpty())
	}, time.Minute, time.Second).Should(Succeed())

	t.Run("When the document is JSON it should be the direct one's without what is hidden", func(t *testing.T) {
		g := NewWithT(t)
		for name, raw := range direct.Definitions {
			if ofThePlatform(name) {
				g.Expect(proxied.Definitions[name]).To(BeEmpty(), name)
				continue
			}
			if strings.HasPrefix(name, "io.x-k8s.cluster.") || strings.HasPrefix(name, "io.k8s.api.core.v1.Event") {
				g.Expect(proxied.Definitions[name]).NotTo(BeEmpty(), name)
				g.Expect(string(proxied.Definitions[name])).To(MatchJSON(string(raw)), name)
			}
		}
		for path := range direct.Paths {
			_, there := proxied.Paths[path]
			g.Expect(there).To(Equal(!ofThePlatform(path)), path)
		}
		raw, err := json.Marshal(proxied)
		g.Expect(err).NotTo(HaveOccurred())
		for _, part := range strings.Split(string(raw), `"$ref":"#/`)[1:] {
			at, name, _ := strings.Cut(part[:strings.IndexByte(part, '"')], "/")
			g.Expect(map[string]map[string]json.RawMessage{"definitions": proxied.Definitions, "parameters": proxied.Parameters}[at][name]).NotTo(BeEmpty(), "references lead somewhere: "+name)
		}
	})
	t.Run("When client-go asks for it in protobuf it should have the same types either way, and those of JSON", func(t *testing.T) {
		g := NewWithT(t)
		docs := map[string]map[string]string{}
		for _, v := range both {
			client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(v.cfg))
			g.Expect(err).NotTo(HaveOccurred())
			doc, err := client.OpenAPISchema()
			g.Expect(err).NotTo(HaveOccurred(), v.name)
			docs[v.name] = map[string]string{}
			for _, d := range doc.GetDefinitions().GetAdditionalProperties() {
				raw, err := json.Marshal(d.GetValue())
				g.Expect(err).NotTo(HaveOccurred())
				docs[v.name][d.GetName()] = string(raw)
			}
			for _, p := range doc.GetPaths().GetPath() {
				raw, err := json.Marshal(p.GetValue().GetGet())
				g.Expect(err).NotTo(HaveOccurred())
				docs[v.name][p.GetName()] = string(raw)
			}
		}
		const prefix = "/apis/cluster.x-k8s.io/"
		compared := 0
		for name, want := range docs["direct"] {
			got, there := docs["proxied"][name]
			g.Expect(there).To(Equal(!ofThePlatform(name)), name)
			// Names of shared parameters are made of what they say.
			if there && !strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "/apis/infrastructure.") {
				g.Expect(got).To(Equal(want), name)
				compared++
			}
		}
		g.Expect(compared).To(BeNumerically(">", 100))
		for name := range proxied.Definitions {
			g.Expect(docs["proxied"][name]).NotTo(BeEmpty(), name)
		}
	})
	t.Run("When a client takes both it should get what the server prefers", func(t *testing.T) {
		g := NewWithT(t)
		for _, accept := range []string{openAPIProtobuf + "," + jsonType, jsonType + "," + openAPIProtobuf, openAPIProtobuf} {
			_, direct, _ := both[0].ask(t, request{"GET", "/openapi/v2", "", "", accept})
			code, head, _ := both[1].ask(t, request{"GET", "/openapi/v2", "", "", accept})
			g.Expect(code).To(Equal(200))
			g.Expect(head).To(Equal(direct), accept)
		}
	})
}
