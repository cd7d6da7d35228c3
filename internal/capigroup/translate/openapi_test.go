package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
)

// openAPIDocument has every position that names a group, and many that only look like it.
func openAPIDocument() string {
	kind := func(group string) string {
		return `{"group":"` + group + `","kind":"Machine","version":"v1beta2"}`
	}
	schema := func(definitions string) string {
		ref := `{"$ref":"#/definitions/` + definitions + `v1beta2.Machine"}`
		return `{"type":"object","description":"of cluster.x-k8s.io and ` + definitions + `v1.X","required":["io.x-k8s.cluster.v1.R"],"default":{"$ref":"io.x-k8s.cluster.v1.D"},"enum":["io.x-k8s.cluster.v1.E"],
			"properties":{"default":` + ref + `,"tags":{"type":"array","items":` + ref + `},"$ref":` + ref + `,"properties":{"properties":{"a":` + ref + `}},"map":{"additionalProperties":` + ref + `},"all":{"allOf":[` + ref + `]},"spec":` + ref + `},
			"x-kubernetes-group-version-kind":[` + kind("") + `,` + kind(Standard) + `,` + kind("infrastructure."+Private) + `],"x-kubernetes-list-type":"cluster.x-k8s.io"}`
	}
	path := func(group, camel, definitions string) string {
		ref := `{"$ref":"#/definitions/` + definitions + `v1beta2.Machine"}`
		return `{"get":{"description":"cluster.x-k8s.io","tags":["` + camel + `_v1beta2"],"operationId":"list` + strings.ToUpper(camel[:1]) + camel[1:] + `V1beta2Machine","consumes":["application/json"],"schemes":["https"],
			"parameters":[{"in":"body","name":"body","schema":` + ref + `},{"$ref":"#/parameters/body-x"},{"in":"query","name":"q","type":"string"}],
			"responses":{"200":{"description":"OK","schema":` + ref + `},"201":{"$ref":"#/responses/r"}},"x-kubernetes-action":"list","x-kubernetes-group-version-kind":` + kind(group) + `},
			"parameters":[{"in":"path","name":"name","type":"string","required":true}],"put":{"responses":{"200":{"description":"OK"}}}}`
	}
	const standardCamelGroup, privateCamelGroup = "clusterXK8sIo", "clusterHypershiftOpenshiftIo"
	return `{"swagger":"2.0","info":{"title":"cluster.x-k8s.io","version":"v1"},"paths":{
		"/apis/` + Standard + `/v1beta2/machines":` + path(Standard, standardCamelGroup, standardDefinitions) + `,
		"/apis/infrastructure.` + Private + `/v1beta2/machines":` + path(Private, privateCamelGroup, privateDefinitions) + `,
		"/api/v1/pods":` + path("", "core", "io.k8s.api.core.") + `},
		"definitions":{"` + standardDefinitions + `v1beta2.Machine":` + schema(standardDefinitions) + `,"` + privateDefinitions + `v1beta2.Machine":` + schema(privateDefinitions) + `,"io.k8s.api.core.v1.Pod":` + schema("io.k8s.api.core.") + `},
		"parameters":{"body-x":{"in":"body","name":"body","schema":{"$ref":"#/definitions/` + privateDefinitions + `v1beta2.Machine"}},"q":{"in":"query","name":"q","type":"string"}},
		"responses":{"r":{"description":"OK","schema":{"$ref":"#/definitions/` + privateDefinitions + `v1beta2.Machine"}}}}`
}

func TestOpenAPIProtobuf(t *testing.T) {
	parse := func(raw []byte) *openapi_v2.Document {
		t.Helper()
		doc, err := openapi_v2.ParseDocument(raw)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	request := in(t, "GET", "/openapi/v2")
	for _, hide := range []bool{true, false} {
		t.Run(fmt.Sprintf("When a document comes as protobuf it should be what the translated JSON is, hiding: %v", hide), func(t *testing.T) {
			g := NewWithT(t)
			src := []byte(openAPIDocument())
			p := request.Answer(hide)
			fromJSON, err := Bytes(p, nil, src)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(json.Valid(fromJSON)).To(BeTrue())
			wire, err := proto.Marshal(parse(src))
			g.Expect(err).NotTo(HaveOccurred())
			out, err := OpenAPIProtobuf(p, nil, wire)
			g.Expect(err).NotTo(HaveOccurred())
			got := &openapi_v2.Document{}
			g.Expect(proto.Unmarshal(out, got)).To(Succeed())
			text := func(d *openapi_v2.Document) string {
				raw, err := d.YAMLValue("")
				g.Expect(err).NotTo(HaveOccurred())
				return string(raw)
			}
			g.Expect(text(got)).To(Equal(text(parse(fromJSON))))
			g.Expect(proto.Equal(got, parse(fromJSON))).To(BeTrue())
			if hide {
				g.Expect(got.GetDefinitions().GetAdditionalProperties()).To(HaveLen(2))
				g.Expect(got.GetPaths().GetPath()).To(HaveLen(2))
				return
			}
			back, err := OpenAPIProtobuf(p, nil, out)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bytes.Equal(back, wire)).To(BeTrue(), "twice is as before")
		})
	}
	t.Run("When it is cut off it should be an error or a shorter message, and never panic", func(t *testing.T) {
		g := NewWithT(t)
		wire, err := proto.Marshal(parse([]byte(openAPIDocument())))
		g.Expect(err).NotTo(HaveOccurred())
		failed := 0
		for n := range wire {
			if _, err := OpenAPIProtobuf(request.Answer(true), nil, wire[:n]); err != nil {
				failed++
			}
		}
		g.Expect(failed).To(BeNumerically(">", len(wire)*9/10))
	})
	t.Run("When schemas nest without end it should be an error", func(t *testing.T) {
		wire := []byte{}
		for range 600 { // Schema.all_of in Schema
			head := []byte{24<<3&0x7f | 2 | 0x80, 1}
			wire = append(append(head, varint(len(wire))...), wire...)
		}
		entry := append([]byte{2<<3 | 2}, append(varint(len(wire)), wire...)...)
		entry = append([]byte{1<<3 | 2}, append(varint(len(entry)), entry...)...)
		entry = append([]byte{9<<3 | 2}, append(varint(len(entry)), entry...)...)
		_, err := OpenAPIProtobuf(request.Answer(true), nil, entry)
		NewWithT(t).Expect(err).To(MatchError(ErrTooDeep))
	})
}

func varint(n int) (out []byte) {
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}
