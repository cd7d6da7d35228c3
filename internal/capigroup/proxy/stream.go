package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"hcp.internal/platform/internal/capigroup/translate"
)

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
	s.x.spend(spent)
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
	p    *Proxy
	x    *exchange
	src  io.ReadCloser
	plan translate.Plan
	head [4]byte
	in   []byte
	out  []byte
	left []byte

	counted atomic.Int64 // bytes of in and out that the metric knows of
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
			f.p.cfg.Metrics.failure("token-too-large")
			return 0, translate.ErrTooLarge
		}
		if cap(f.in) < int(size) {
			f.in = make([]byte, size)
		}
		f.in = f.in[:size]
		if _, err := io.ReadFull(f.src, f.in); err != nil {
			return 0, fmt.Errorf("reading event: %w", noEOF(err))
		}
		begun := time.Now() // a duration for a metric
		out, err := translate.ProtobufEvent(f.plan, append(f.out[:0], 0, 0, 0, 0), f.in)
		spent := time.Since(begun) // a duration for a metric
		f.count(cap(f.in) + cap(out))
		f.x.spend(spent)
		f.p.cfg.Metrics.eventDelay.observe(spent)
		if err != nil {
			f.p.cfg.Metrics.failure("invalid-protobuf")
			return 0, err
		}
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
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

// count tells the metric how much memory the watch has now.
func (f *frames) count(n int) {
	f.p.cfg.Metrics.buffered.Add(int64(n) - f.counted.Swap(int64(n)))
}

// Close implements io.Closer.
func (f *frames) Close() error {
	f.count(0)
	return f.src.Close()
}

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
