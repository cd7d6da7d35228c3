package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/url"
	"strings"

	"hcp.internal/platform/internal/capigroup/translate"
)

const (
	typeJSON     = "application/json"
	typeYAML     = "application/yaml"
	typeProtobuf = "application/vnd.kubernetes.protobuf"
	typeCBOR     = "application/cbor"
)

// accepted is what is asked for in place of what the client takes.
type accepted struct {
	header string // empty: there was none
	yaml   bool   // what comes as JSON becomes YAML: the client takes nothing else
}

// acceptable is the Accept header without what can't be translated, and false if nothing is left of it.
func acceptable(values []string, r *translate.Request) (accepted, bool) {
	if len(values) == 0 {
		if r.Class == translate.ClassOpenAPI || r.Class == translate.ClassDiscovery {
			return accepted{header: typeJSON}, true
		}
		return accepted{}, true
	}
	var kept, last, asYAML []string
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		part = strings.TrimSpace(part)
		if translate.IsOpenAPIProtobuf(part) && r.OpenAPIv2() {
			kept = append(kept, part)
			continue
		}
		media, _, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(media, typeCBOR):
		case strings.HasSuffix(media, "+protobuf"): // OpenAPI v3: clients that know it know JSON, too
		case media == typeProtobuf && r.Hides(): // its messages are not looked into for what is hidden
		case media == typeProtobuf && r.List && r.Class == translate.ClassObject:
			last = append(last, part) // has to be held as a whole
		case media == typeProtobuf && r.JSONOnly():
		case media == typeYAML && (r.Watch || r.Class == translate.ClassOpenAPI): // the API server has none, either
		case media == typeYAML:
			asYAML = append(asYAML, typeJSON+part[len(typeYAML):])
		case media == "*/*" && r.Class == translate.ClassOpenAPI:
			kept = append(kept, typeJSON)
		default:
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		kept = last
	}
	if len(kept) == 0 && len(asYAML) > 0 {
		return accepted{header: strings.Join(asYAML, ","), yaml: true}, true
	}
	return accepted{header: strings.Join(kept, ",")}, len(kept) > 0
}

// changesTags tells whether answers are documents with an ETag that depends on how they are translated.
func changesTags(r *translate.Request) bool {
	return r.Class == translate.ClassDiscovery || r.Class == translate.ClassOpenAPI
}

// rulesVersion changes whenever the same document is translated differently.
const rulesVersion = "2"

// tagSuffix says how documents are translated.
func (p *Proxy) tagSuffix() string {
	view := "hidden"
	if p.cfg.ShowPlatform {
		view = "swapped"
	}
	sum := sha256.Sum256([]byte(translate.Standard + " " + translate.Private + " " + view + " " + rulesVersion))
	return "-" + hex.EncodeToString(sum[:4])
}

// ourTag is the ETag of a translated document.
func ourTag(tag, suffix string) string {
	if !strings.HasSuffix(tag, `"`) {
		return tag + suffix
	}
	return tag[:len(tag)-1] + suffix + `"`
}

// plainTag is what of If-None-Match are the API server's tags; of tags that we didn't make nothing is left.
func plainTag(tags, suffix string) string {
	var kept []string
	for tag := range strings.SplitSeq(tags, ",") {
		tag = strings.TrimSpace(tag)
		if plain, ok := strings.CutSuffix(tag, suffix+`"`); ok {
			kept = append(kept, plain+`"`)
		}
	}
	return strings.Join(kept, ", ")
}

func unescapePath(path string) (string, error) { return url.PathUnescape(path) }
