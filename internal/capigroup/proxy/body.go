package proxy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
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
	edit := func(raw []byte) []byte {
		out, err := translate.Bytes(plan, nil, raw)
		if err != nil {
			return raw // the API server says what is wrong with it
		}
		return out
	}
	switch media {
	case "", typeJSON, "application/merge-patch+json", "application/strategic-merge-patch+json":
		if r.ContentLength < 0 || r.ContentLength > smallBody {
			r.Body = p.stream(r.Body, plan, x, true)
			r.ContentLength = -1
			r.Header.Del("Content-Length")
			return nil
		}
	case "application/json-patch+json":
		edit = func(raw []byte) []byte { return translate.JSONPatch(plan, nil, raw) }
	case "application/apply-patch+yaml", typeYAML:
		edit = func(raw []byte) []byte {
			if !json.Valid(raw) {
				converted, err := yaml.YAMLToJSON(raw)
				if err != nil {
					return raw
				}
				raw = converted
			}
			out, err := translate.Bytes(plan, nil, raw)
			if err != nil {
				return raw
			}
			return out
		}
	case typeProtobuf:
		edit = func(raw []byte) []byte {
			out, err := translate.Protobuf(plan, nil, raw)
			if err != nil {
				return raw
			}
			return out
		}
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

// replaceBody holds a request's body and puts the edited one in its place.
func (p *Proxy) replaceBody(r *http.Request, x *exchange, edit func([]byte) []byte) *status {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
	if err != nil {
		return badRequest("the body broke off")
	}
	if len(raw) > maxRequest {
		return newStatus(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
	}
	begun := time.Now() // a duration for a metric
	out := edit(raw)
	x.spent += time.Since(begun) // a duration for a metric
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
		return p.answerJSON(resp, x, plan)
	case typeProtobuf:
		if params["stream"] == "watch" {
			resp.Body = &frames{src: resp.Body, plan: plan}
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
	x.spent += time.Since(begun) // a duration for a metric
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
	x.spent += time.Since(begun) // a duration for a metric
	if err != nil {
		return p.untranslatable(x, reason)
	}
	resp.Body = io.NopCloser(bytes.NewReader(out))
	resp.ContentLength = int64(len(out))
	setLength(resp.Header, len(out))
	return nil
}

// streamed is a body that is translated while it is read. While it waits for the next part it holds no memory but the Translator's.
type streamed struct {
	p       *Proxy
	x       *exchange
	src     io.ReadCloser
	t       *translate.Translator
	buf     *[]byte // of the pool, where out is; nil if out is empty
	out     []byte  // translated and not read yet
	err     error
	lenient bool         // of a request: the API server says what is wrong with its end
	counted atomic.Int64 // bytes of buf that the metric knows of
}

// part is how much of a list is read, translated and written at once: each part costs a write or two.
const part = 128 << 10

// maxPooled is the largest buffer that is kept for others: parts are as large as what is read at once, and a little more.
const maxPooled = 2 * part

var (
	translators = sync.Pool{New: func() any { return &translate.Translator{} }}
	outputs     = sync.Pool{New: func() any { return new([]byte) }}
)

func (p *Proxy) stream(src io.ReadCloser, plan translate.Plan, x *exchange, lenient bool) io.ReadCloser {
	t, _ := translators.Get().(*translate.Translator)
	t.Reset(plan)
	return &streamed{p: p, x: x, src: src, t: t, lenient: lenient}
}

// Read implements io.Reader. What it reads goes into dst first, and from there, translated, through a buffer back into it.
func (s *streamed) Read(dst []byte) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	for len(s.out) == 0 {
		if s.err != nil {
			s.giveBack()
			return 0, s.err
		}
		n, err := s.src.Read(dst)
		// Of a watch, every event goes on at once. Everything else is sent in large parts: each costs a write.
		for n < len(dst) && err == nil && !s.x.request.Watch {
			var k int
			k, err = s.src.Read(dst[n:])
			n += k
		}
		if n > 0 {
			s.translate(dst[:n])
		}
		if err == nil {
			continue
		}
		if s.err == nil {
			s.err = err
		}
		if errors.Is(err, io.EOF) && s.t != nil {
			if closeErr := s.t.Close(); closeErr != nil && !s.lenient {
				s.err = io.ErrUnexpectedEOF // never an end that looks like one
			}
		}
	}
	n := copy(dst, s.out)
	if s.out = s.out[n:]; len(s.out) == 0 {
		s.putBuffer()
	}
	return n, nil
}

func (s *streamed) translate(part []byte) {
	if s.buf == nil {
		s.buf, _ = outputs.Get().(*[]byte)
	}
	begun := time.Now() // a duration for a metric
	out, err := s.t.Append((*s.buf)[:0], part)
	spent := time.Since(begun) // a duration for a metric
	s.count(cap(out))
	*s.buf, s.out = out, out
	if len(out) == 0 {
		s.putBuffer()
	}
	s.x.spent += spent
	if s.x.request.Watch {
		s.p.cfg.Metrics.eventDelay.observe(spent)
	}
	if err == nil {
		return
	}
	s.p.cfg.Metrics.failure(errorType(err))
	// Of a request, too, nothing may look complete that was translated in part only.
	s.err = err
}

func (s *streamed) putBuffer() {
	if s.buf == nil {
		return
	}
	s.count(0)
	if cap(*s.buf) <= maxPooled {
		outputs.Put(s.buf)
	}
	s.buf, s.out = nil, nil
}

// count tells the metric how much memory the stream has now.
func (s *streamed) count(n int) {
	s.p.cfg.Metrics.buffered.Add(int64(n) - s.counted.Swap(int64(n)))
}

func errorType(err error) string {
	if errors.Is(err, translate.ErrTooLarge) {
		return "token-too-large"
	}
	return "invalid-json"
}

// Close implements io.Closer. A request's body may be closed while another goroutine reads it, so it keeps what it has then.
func (s *streamed) Close() error {
	err := s.src.Close()
	s.count(0)
	if !s.lenient {
		if s.err == nil {
			s.err = http.ErrBodyReadAfterClose
		}
		s.giveBack()
	}
	return err
}

// giveBack is called by the goroutine that reads, after the last translation.
func (s *streamed) giveBack() {
	s.putBuffer()
	if s.t != nil {
		translators.Put(s.t)
		s.t = nil
	}
}

// frames is a watch in protobuf: each event after its length in four bytes.
type frames struct {
	src  io.ReadCloser
	plan translate.Plan
	head [4]byte
	in   []byte
	out  []byte
	left []byte
}

// Read implements io.Reader.
func (f *frames) Read(dst []byte) (int, error) {
	if len(f.left) == 0 {
		if n, err := io.ReadFull(f.src, f.head[:]); err != nil {
			if n > 0 || !errors.Is(err, io.EOF) {
				return 0, fmt.Errorf("reading event: %w", err)
			}
			return 0, io.EOF
		}
		size := binary.BigEndian.Uint32(f.head[:])
		if size > maxMessage {
			return 0, translate.ErrTooLarge
		}
		if cap(f.in) < int(size) {
			f.in = make([]byte, size)
		}
		f.in = f.in[:size]
		if _, err := io.ReadFull(f.src, f.in); err != nil {
			return 0, fmt.Errorf("reading event: %w", noEOF(err))
		}
		out, err := translate.ProtobufEvent(f.plan, append(f.out[:0], 0, 0, 0, 0), f.in)
		if err != nil {
			return 0, err
		}
		binary.BigEndian.PutUint32(out, uint32(len(out)-4)) //nolint:gosec // a little more than size
		f.out, f.left = out, out
	}
	n := copy(dst, f.left)
	f.left = f.left[n:]
	return n, nil
}

// noEOF keeps a body that broke off from looking complete.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.src.Close() }

// pool is buffers for copying.
type pool struct{ sync.Pool }

func newPool(size int) *pool {
	return &pool{sync.Pool{New: func() any { b := make([]byte, size); return &b }}}
}

// Get implements httputil.BufferPool.
func (p *pool) Get() []byte { b, _ := p.Pool.Get().(*[]byte); return *b }

// Put implements httputil.BufferPool.
func (p *pool) Put(b []byte) { p.Pool.Put(&b) }

var (
	listBuffers  = newPool(part)
	copyBuffers  = newPool(32 << 10)
	smallBuffers = newPool(4 << 10)
)
