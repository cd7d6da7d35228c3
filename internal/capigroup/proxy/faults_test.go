package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/capigroup/translate"
)

// The faults that the specification names, and the tests that play them:
//
//	upstream refused                      TestFailures, refuses connections
//	upstream slow, half-open              TestHalfOpen
//	upstream reset or cut in a body       TestFailures, an answer breaks off
//	429, 410, 401 and others              TestFailures, answers with an error
//	401 and a token that was replaced     TestCredentials
//	CA replaced                           TestCARotation
//	proxy ends during a watch             TestFailures, the proxy's server stops
//	memory                                TestMemory, TestSlowReader
//	client reads slowly                   TestSlowReader
//	client leaves                         TestFailures, leaves a watch; TestClientsLeave
//	list of 100 MB, 1,000 watches         TestMemory
//	string of 1.4 MiB                     TestPassage (request), TestOddAnswers (answer)
//	nesting of 10,000                     TestPassage (request), TestOddAnswers (answer)
//	invalid UTF-8, NUL, BOM, garbage      TestPassage (request), TestOddAnswers (answer), FuzzJSON
//	duplicate keys, huge numbers          TestOddAnswers, FuzzJSON
//	Status with 200, empty body           TestOddAnswers
//	no length, Expect: 100-continue       TestOddRequests
//	paths, CONNECT, hosts                 TestRefusals, FuzzPath
//	content types                         TestPassage, a type that can't be translated

// relay is a connection to a server that can go silent without being closed.
type relay struct {
	listener net.Listener
	silent   atomic.Bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			go r.copy(server, client)
			go r.copy(client, server)
		}
	}()
	return r
}

func (r *relay) copy(dst io.Writer, src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if !r.silent.Load() {
			_, _ = dst.Write(buf[:n])
		}
	}
}

func TestHalfOpen(t *testing.T) {
	g := NewWithT(t)
	_, back := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, `{"type":"ADDED","object":{"apiVersion":"`+storedGV+`"}}`+"\n")
		_ = http.NewResponseController(w).Flush()
		if strings.Contains(r.URL.RawQuery, "watch") {
			<-r.Context().Done()
		}
	})
	silent := newRelay(t, strings.TrimPrefix(back.URL, "https://"))
	front := before(t, back, func(c *UpstreamConfig) {
		c.URL = "https://" + silent.listener.Addr().String()
		c.PingAfter, c.PingTimeout = 100*time.Millisecond, 5*time.Second // as long as nobody here stands still
	})
	resp, err := http.Get(front.URL + machinesPath + "?watch=true")
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	line, err := events.ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(ContainSubstring(viewGV))
	asked, body := ask(t, http.MethodGet, front.URL+machinesPath, "", "")
	g.Expect(asked.StatusCode).To(Equal(200), body)

	silent.silent.Store(true)
	_, err = events.ReadString('\n')
	g.Expect(err).To(HaveOccurred(), "a watch on a dead connection ends, and not as if it were complete")
	g.Expect(errors.Is(err, io.EOF)).To(BeFalse())
	asked, body = ask(t, http.MethodGet, front.URL+machinesPath, "", "")
	g.Expect(asked.StatusCode).To(Equal(503))
	expectStatus(g, body, "ServiceUnavailable", 503)
}

func TestSlowReader(t *testing.T) {
	g := NewWithT(t)
	var sent atomic.Int64
	item := `{"type":"MODIFIED","object":{"apiVersion":"` + storedGV + `","spec":{"x":"` + strings.Repeat("y", 8<<10) + `"}}}` + "\n"
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			n, err := io.WriteString(w, item)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", machinesPath)
	g.Expect(err).NotTo(HaveOccurred())
	// Nothing is read. What is under way is what the sockets and windows between take, and then the API server waits.
	g.Eventually(sent.Load, "60s").Should(BeNumerically(">", 0))
	g.Eventually(func() bool {
		before := sent.Load()
		time.Sleep(300 * time.Millisecond) // to see that nothing moves takes time; if something does, it is looked at again
		return sent.Load() == before
	}, "60s").Should(BeTrue())
	g.Expect(sent.Load()).To(BeNumerically("<", 24<<20))
}

func TestClientsLeave(t *testing.T) {
	g := NewWithT(t)
	var open atomic.Int32
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		answerJSON(w, `{"items":[`+strings.Repeat(" ", smallBody))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: &http.Transport{}}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			path := machinesPath
			if i%2 == 0 {
				path += "?watch=true"
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	g.Eventually(open.Load, "60s").Should(Equal(int32(40)))
	cancel()
	all.Wait()
	g.Eventually(open.Load, "60s").Should(BeZero())
	client.CloseIdleConnections()
	g.Eventually(runtime.NumGoroutine, "60s").Should(BeNumerically("<", before+20), "some connections to the API server stay")
}

func TestOddAnswers(t *testing.T) {
	const standard, private = translate.Standard, translate.Private
	long := strings.Repeat("z", 1400<<10)
	for name, tc := range map[string]struct {
		answer, want string
		code         int // of the proxy; 0: the same as the API server's, and 200
	}{
		"an empty body":                  {"", "", 0},
		"a Status with 200":              {`{"kind":"Status","message":"machines.` + private + ` \"x\" deleted","details":{"group":"` + private + `"}}`, `{"kind":"Status","message":"machines.` + standard + ` \"x\" deleted","details":{"group":"` + standard + `"}}`, 0},
		"a key twice":                    {`{"apiVersion":"` + storedGV + `","apiVersion":"` + storedGV + `"}`, `{"apiVersion":"` + viewGV + `","apiVersion":"` + viewGV + `"}`, 0},
		"a huge number":                  {`{"apiVersion":"` + storedGV + `","spec":{"n":1e999999,"m":10000000000000000001}}`, `{"apiVersion":"` + viewGV + `","spec":{"n":1e999999,"m":10000000000000000001}}`, 0},
		"a string of 1.4 MiB":            {`{"apiVersion":"` + storedGV + `","spec":{"x":"` + long + `"}}`, `{"apiVersion":"` + viewGV + `","spec":{"x":"` + long + `"}}`, 0},
		"a name of 1.4 MiB":              {`{"apiVersion":"` + long + `"}`, `{"apiVersion":"` + long + `"}`, 0},
		"invalid UTF-8 and a NUL":        {"{\"apiVersion\":\"" + storedGV + "\",\"x\":\"\xff\x00\"}", "{\"apiVersion\":\"" + viewGV + "\",\"x\":\"\xff\x00\"}", 0},
		"a mark of byte order":           {"\xef\xbb\xbf{\"apiVersion\":\"" + storedGV + "\"}", "\xef\xbb\xbf{\"apiVersion\":\"" + storedGV + "\"}", 0},
		"what is deeper than 512":        {`{"apiVersion":"` + storedGV + `","spec":` + strings.Repeat(`{"apiVersion":`, 10000), "", 502},
		"what ends too early":            {`{"apiVersion":"` + storedGV + `"`, "", 502},
		"spaces and a newline at an end": {` { "apiVersion" : "` + storedGV + `" } ` + "\n\n", ` { "apiVersion" : "` + viewGV + `" } ` + "\n\n", 0},
	} {
		t.Run("When the API server answers with "+name+" it should be answered well", func(t *testing.T) {
			g := NewWithT(t)
			front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(tc.answer)))
				answerJSON(w, tc.answer)
			})
			resp, body := ask(t, http.MethodGet, front.URL+machinesPath+"/m", "", "")
			if tc.code != 0 {
				g.Expect(resp.StatusCode).To(Equal(tc.code))
				expectStatus(g, body, "InternalError", tc.code)
				return
			}
			g.Expect(resp.StatusCode).To(Equal(200))
			g.Expect(body == tc.want).To(BeTrue(), "%.300q", body)
		})
	}
}

func TestOddRequests(t *testing.T) {
	g := NewWithT(t)
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		answerJSON(w, string(raw))
	})
	object := `{"apiVersion":"` + viewGV + `"}`
	for name, request := range map[string]string{
		"no length":              "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(object), object),
		"Expect: 100-continue":   fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n\r\n%s", len(object), object),
		"a length and no type":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(object), object),
		"chunks of single bytes": "Transfer-Encoding: chunked\r\n\r\n" + bytewise(object) + "0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
		media := "Content-Type: application/json\r\n"
		if strings.Contains(name, "no type") {
			media = ""
		}
		_, err = io.WriteString(conn, "POST "+machinesPath+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"+media+request)
		g.Expect(err).NotTo(HaveOccurred())
		answers := bufio.NewReader(conn)
		code, body, err := readAnswer(answers)
		if err == nil && code == http.StatusContinue {
			code, body, err = readAnswer(answers)
		}
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(code).To(Equal(200), name)
		g.Expect(body).To(Equal(object), name)
		g.Expect(conn.Close()).To(Succeed())
	}
}

// readAnswer reads one answer with its body.
func readAnswer(from *bufio.Reader) (code int, body string, err error) {
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

func bytewise(s string) string {
	var out strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&out, "1\r\n%c\r\n", s[i])
	}
	return out.String()
}
