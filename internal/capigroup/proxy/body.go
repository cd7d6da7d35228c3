package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/capigroup/translate"
)

const (
	// smallBody is held to tell its exact length; nearly all bodies are smaller.
	smallBody = 256 << 10
	// maxRequest is the largest body that an API server reads. What has to be held is held up to here.
	maxRequest = 3 << 20
	// maxMessage is the largest protobuf message of an answer that is held. Lists come as JSON wherever the client takes that.
	maxMessage = 32 << 20
	// maxDocument is the largest OpenAPI document.
	maxDocument = 64 << 20
)

// prepareBody translates what the client sends.
func (p *Proxy) prepareBody(r *http.Request, x *exchange) *status {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" {
		return unsupported("the Content-Type header can't be read")
	}
	plan := x.request.Body()
	edit := func(raw []byte) ([]byte, error) { return editJSON(plan, raw) }
	switch media {
	case "", typeJSON, "application/merge-patch+json", "application/strategic-merge-patch+json":
		if r.ContentLength < 0 || r.ContentLength > smallBody {
			r.Body = p.stream(r.Body, plan, x, true)
			r.ContentLength = -1
			r.Header.Del("Content-Length")
			return nil
		}
	case "application/json-patch+json":
		edit = func(raw []byte) ([]byte, error) { return translate.JSONPatch(plan, nil, raw) }
	case "application/apply-patch+yaml", typeYAML:
		strict := strings.EqualFold(r.URL.Query().Get("fieldValidation"), "Strict")
		edit = func(raw []byte) ([]byte, error) { return editYAML(plan, raw, strict) }
	case typeProtobuf:
		edit = func(raw []byte) ([]byte, error) { return translate.Protobuf(plan, nil, raw) }
	case typeCBOR, "application/apply-patch+cbor":
		p.cfg.Metrics.failure("unsupported-content-type")
		return unsupported("CBOR is not served here; use application/json")
	default:
		p.cfg.Metrics.failure("unsupported-content-type")
		if x.request.Mapped() {
			return unsupported("bodies of this type can't be translated; use application/json")
		}
		return nil
	}
	return p.replaceBody(r, x, edit)
}

// editYAML leaves YAML that names no group as it is, so that the API server finds in it what the client wrote, keys that come twice included.
// What names one becomes JSON.
func editYAML(plan translate.Plan, raw []byte, strict bool) ([]byte, error) {
	if !json.Valid(raw) {
		if plan.NeedsScan() && !translate.MayName(raw) {
			return raw, nil
		}
		toJSON := yaml.YAMLToJSON
		if strict {
			toJSON = yaml.YAMLToJSONStrict
		}
		converted, err := toJSON(raw)
		if err != nil && !strict {
			return raw, nil // the API server says what is wrong with it
		}
		if err != nil {
			return nil, err
		}
		raw = converted
	}
	return editJSON(plan, raw)
}

// editJSON leaves what is no JSON as it is: the API server, which reads as deep as encoding/json, says what is wrong with it.
func editJSON(plan translate.Plan, raw []byte) ([]byte, error) {
	out, err := translate.Bytes(plan, nil, raw)
	if err != nil && !json.Valid(raw) {
		return raw, nil
	}
	return out, err
}

// replaceBody holds a request's body and puts the edited one in its place. A body that can't be edited goes on only if it names no group: what
// the API server takes all the same must not be stored untranslated.
func (p *Proxy) replaceBody(r *http.Request, x *exchange, edit func([]byte) ([]byte, error)) *status {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil {
		return badRequest("the body broke off")
	}
	if len(raw) > maxRequest {
		return newStatus(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
	}
	begun := time.Now() // a duration for a metric
	out, err := edit(raw)
	x.spend(time.Since(begun)) // a duration for a metric
	if err != nil && translate.MayName(raw) {
		p.cfg.Metrics.failure("invalid-request")
		return badRequest("the body can't be translated: " + err.Error())
	}
	if err != nil {
		out = raw
	}
	r.Body = io.NopCloser(bytes.NewReader(out))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out)), nil }
	r.ContentLength = int64(len(out))
	setLength(r.Header, len(out))
	return nil
}

// answerBody translates what the API server answers.
func (p *Proxy) answerBody(resp *http.Response, x *exchange) error {
	if x.request.OpenAPIv2() && translate.IsOpenAPIProtobuf(resp.Header.Get("Content-Type")) {
		plan := x.request.Answer(!p.cfg.ShowPlatform)
		return p.hold(resp, x, maxDocument, "invalid-protobuf", func(raw []byte) ([]byte, error) {
			return translate.OpenAPIProtobuf(plan, make([]byte, 0, len(raw)), raw)
		})
	}
	media, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return nil //nolint:nilerr // not said what it is, so none of ours: an empty answer, for one
	}
	if resp.Header.Get("Content-Encoding") != "" {
		return p.untranslatable(x, "encoding")
	}
	plan := x.request.Answer(!p.cfg.ShowPlatform)
	if resp.StatusCode >= http.StatusMultipleChoices {
		plan = x.request.Failure()
	}
	switch media {
	case typeJSON:
		if x.yaml {
			return p.answerYAML(resp, x, plan)
		}
		return p.answerJSON(resp, x, plan)
	case typeProtobuf:
		if params["stream"] == "watch" {
			resp.Body = &frames{p: p, x: x, src: resp.Body, plan: plan}
			return nil
		}
		return p.hold(resp, x, maxMessage, "invalid-protobuf", func(raw []byte) ([]byte, error) { return translate.Protobuf(plan, nil, raw) })
	case "text/plain", "text/html":
		return nil // messages of the server itself
	}
	if x.request.Mapped() {
		return p.untranslatable(x, "unsupported-content-type")
	}
	return nil
}

// answerYAML is for clients that take nothing else. The API server, too, makes YAML of its JSON, in the same way.
func (p *Proxy) answerYAML(resp *http.Response, x *exchange, plan translate.Plan) error {
	resp.Header.Set("Content-Type", typeYAML)
	return p.hold(resp, x, maxMessage, "invalid-json", func(raw []byte) ([]byte, error) {
		out, err := translate.Bytes(plan, make([]byte, 0, len(raw)), raw)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(out)
	})
}

func (p *Proxy) answerJSON(resp *http.Response, x *exchange, plan translate.Plan) error {
	whole := func(raw []byte) ([]byte, error) {
		if plan.NeedsScan() && !translate.Needles(raw) {
			return raw, nil
		}
		return translate.Bytes(plan, make([]byte, 0, len(raw)), raw)
	}
	switch n := resp.ContentLength; {
	case plan.Whole():
		return p.hold(resp, x, maxDocument, "invalid-json", whole)
	case n >= 0 && n <= smallBody:
		return p.hold(resp, x, smallBody, "invalid-json", whole)
	case n < 0 && !x.request.Watch:
		return p.answerUnknown(resp, x, plan)
	}
	resp.Body = p.stream(resp.Body, plan, x, false)
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return nil
}

// head is how much of an answer of unknown length is waited for before anything is sent. Most are shorter, and go out at once and with
// their length then, instead of in pieces.
const head = 32 << 10

var heads = sync.Pool{New: func() any { b := make([]byte, head); return &b }}

// answerUnknown is for answers that don't tell their length.
func (p *Proxy) answerUnknown(resp *http.Response, x *exchange, plan translate.Plan) error {
	in, _ := heads.Get().(*[]byte)
	n := 0
	var err error
	for n < head && err == nil {
		var k int
		k, err = resp.Body.Read((*in)[n:])
		n += k
	}
	if err == nil {
		resp.Body = p.stream(&prefixed{in: in, head: (*in)[:n], rest: resp.Body}, plan, x, false)
		resp.Header.Del("Content-Length")
		return nil
	}
	defer heads.Put(in)
	_ = resp.Body.Close() // read to its end
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	out, _ := outputs.Get().(*[]byte)
	t, _ := translators.Get().(*translate.Translator)
	defer translators.Put(t)
	t.Reset(plan)
	begun := time.Now() // a duration for a metric
	*out, err = t.Append((*out)[:0], (*in)[:n])
	if err == nil {
		err = t.Close()
	}
	x.spend(time.Since(begun)) // a duration for a metric
	if err != nil {
		outputs.Put(out)
		return p.untranslatable(x, errorType(err))
	}
	resp.Body = &pooledBody{Reader: bytes.NewReader(*out), buf: out}
	resp.ContentLength = int64(len(*out))
	setLength(resp.Header, len(*out))
	return nil
}

// prefixed is a body whose beginning has been read.
type prefixed struct {
	in   *[]byte // of the pool
	head []byte  // of in
	rest io.ReadCloser
}

// Read implements io.Reader.
func (b *prefixed) Read(dst []byte) (int, error) {
	if len(b.head) == 0 {
		return b.rest.Read(dst)
	}
	n := copy(dst, b.head)
	if b.head = b.head[n:]; len(b.head) == 0 {
		heads.Put(b.in)
		b.in = nil
	}
	return n, nil
}

// Close implements io.Closer.
func (b *prefixed) Close() error { return b.rest.Close() }

// pooledBody is a whole answer in a buffer of the pool.
type pooledBody struct {
	*bytes.Reader
	buf *[]byte
}

// Close implements io.Closer.
func (b *pooledBody) Close() error {
	if b.buf != nil && cap(*b.buf) <= maxPooled {
		b.Reader.Reset(nil)
		outputs.Put(b.buf)
	}
	b.buf = nil
	return nil
}

var (
	errUntranslatable = errors.New("answer can't be translated")
	// errBroken is of an answer that broke off. The client sees that as it is: the API server may have done what it was asked.
	errBroken = errors.New("reading answer")
)

func (p *Proxy) untranslatable(x *exchange, reason string) error {
	x.reason = reason
	p.cfg.Metrics.failure(reason)
	return errUntranslatable
}

// hold reads an answer and puts the edited one in its place.
func (p *Proxy) hold(resp *http.Response, x *exchange, limit int, reason string, edit func([]byte) ([]byte, error)) error {
	var raw []byte
	var err error
	if n := resp.ContentLength; n >= 0 && n <= int64(limit) {
		raw = make([]byte, n)
		_, err = io.ReadFull(resp.Body, raw)
	} else {
		raw, err = io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	}
	_ = resp.Body.Close() // read as far as we want
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	if len(raw) > limit {
		return p.untranslatable(x, "token-too-large")
	}
	begun := time.Now() // a duration for a metric
	out, err := edit(raw)
	x.spend(time.Since(begun)) // a duration for a metric
	if err != nil {
		return p.untranslatable(x, reason)
	}
	resp.Body = io.NopCloser(bytes.NewReader(out))
	resp.ContentLength = int64(len(out))
	setLength(resp.Header, len(out))
	return nil
}
