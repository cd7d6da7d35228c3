package awsemulator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request, in bytes.
const maxBody = 16 << 20

// Call is a request that was made.
type Call struct {
	// Service is as requests are signed for it, such as ec2; Action as AWS's documentation calls it.
	Service, Action string
	Params          url.Values
	Status          int
	// Mutating says that it may change something.
	Mutating bool
	Agent    string
	// Header is the request's, without its signature.
	Header http.Header
}

// String is service and action.
func (c Call) String() string { return c.Service + ":" + c.Action }

// Fault is what is to go wrong.
type Fault struct {
	// Service and Action choose calls; empty: all.
	Service, Action string
	// Skip is how many such calls go well at first; Times how many fail then, 0: all.
	Skip, Times int
	// Code is the API's; Status the answer's, 400 if 0.
	Code   string
	Status int
	// Lost carries the call out and loses its answer.
	Lost bool
	// Raw is the answer's body instead of an error in the service's form.
	Raw   string
	Delay time.Duration

	seen int
}

// Recorder passes calls on to moto. It is safe for concurrent use.
type Recorder struct {
	proxy  *httputil.ReverseProxy
	direct string

	mu     sync.Mutex
	calls  []Call
	faults []*Fault
	after  func(Call)
	gaps   gaps
}

func newRecorder(direct string) *Recorder {
	target, _ := url.Parse(direct)
	r := &Recorder{direct: direct}
	r.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
			p.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: r.repair,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return r
}

// Calls are those since the last Forget, in order.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Mutating are the calls that may have changed something.
func (r *Recorder) Mutating() []Call {
	return slices.DeleteFunc(r.Calls(), func(c Call) bool { return !c.Mutating })
}

// Forget drops what was recorded.
func (r *Recorder) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Fail makes calls fail until Heal.
func (r *Recorder) Fail(faults ...Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range faults {
		r.faults = append(r.faults, &faults[i])
	}
}

// Heal ends all faults, and what After asked for.
func (r *Recorder) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults, r.after = nil, nil
}

// After has f called when a call was carried out, before it is answered.
func (r *Recorder) After(f func(Call)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = f
}

func (r *Recorder) reset() {
	r.Forget()
	r.Heal()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = gaps{}
}

// fault is what is to go wrong with a call, if anything.
func (r *Recorder) fault(c Call) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.faults {
		if (f.Service != "" && f.Service != c.Service) || (f.Action != "" && f.Action != c.Action) {
			continue
		}
		f.seen++
		if f.seen > f.Skip && (f.Times == 0 || f.seen <= f.Skip+f.Times) {
			return f
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "body too large", http.StatusRequestEntityTooLarge)
		return
	}
	call := identify(req, body)
	answer := &capture{header: http.Header{}, status: http.StatusOK}
	f := r.fault(call)
	if f != nil && f.Delay > 0 {
		select {
		case <-req.Context().Done():
		case <-time.After(f.Delay):
		}
	}
	switch {
	case f != nil && !f.Lost && (f.Code != "" || f.Raw != ""):
		answer.fail(call.Service, *f)
	case r.fill(answer, req, call):
	default:
		out := req.Clone(withCall(req.Context(), call))
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.ContentLength = int64(len(body))
		if account := r.asWhom(req, call); account != Account {
			out.Header.Set(accountHeader, account)
		}
		r.share(call, body)
		r.proxy.ServeHTTP(answer, out)
	}
	call.Status = answer.status
	r.mu.Lock()
	r.calls = append(r.calls, call)
	after := r.after
	r.mu.Unlock()
	if after != nil {
		after(call)
	}
	if f != nil && f.Lost || req.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the connection is cut
	}
	answer.send(w, req.Method)
}

// capture holds an answer back.
type capture struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (c *capture) Header() http.Header         { return c.header }
func (c *capture) WriteHeader(status int)      { c.status = status }
func (c *capture) Write(b []byte) (int, error) { return c.body.Write(b) }

func (c *capture) send(w http.ResponseWriter, method string) {
	for key, values := range c.header {
		w.Header()[key] = values
	}
	// The answer to HEAD tells the length of what it doesn't have. Others are as long as they are, also when they were changed on their way.
	if method != http.MethodHead {
		w.Header().Del("Content-Length")
		if c.body.Len() > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(c.body.Len()))
		}
	}
	w.WriteHeader(c.status)
	_, _ = w.Write(c.body.Bytes())
}

// fail writes an error in the service's form.
func (c *capture) fail(service string, f Fault) {
	c.status = f.Status
	if c.status == 0 {
		c.status = http.StatusBadRequest
	}
	const text = "as the test asked for"
	switch {
	case f.Raw != "":
		c.header.Set("Content-Type", "text/html")
		c.body.WriteString(f.Raw)
	case service == "ec2":
		c.header.Set("Content-Type", "text/xml")
		fmt.Fprintf(&c.body, "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r-1</RequestID></Response>", f.Code, text)
	case service == "s3":
		c.header.Set("Content-Type", "application/xml")
		fmt.Fprintf(&c.body, "<Error><Code>%s</Code><Message>%s</Message><RequestId>r-1</RequestId></Error>", f.Code, text)
	case service == "ram" || service == "kms":
		c.header.Set("Content-Type", "application/json")
		c.header.Set("X-Amzn-Errortype", f.Code)
		fmt.Fprintf(&c.body, `{"__type":%q,"message":%q}`, f.Code, text)
	default:
		c.header.Set("Content-Type", "text/xml")
		fmt.Fprintf(&c.body, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r-1</RequestId></ErrorResponse>", f.Code, text)
	}
}

// scope is the part of a signature that names the service.
var scope = regexp.MustCompile(`Credential=[^/]*/[0-9]+/[^/]*/([a-z0-9-]+)/aws4_request`)

// identify tells which call a request is.
func identify(req *http.Request, body []byte) Call {
	call := Call{Agent: req.UserAgent(), Header: req.Header.Clone()}
	call.Header.Del("Authorization")
	if m := scope.FindStringSubmatch(req.Header.Get("Authorization")); m != nil {
		call.Service = m[1]
	}
	switch {
	case req.Header.Get("X-Amz-Target") != "":
		_, call.Action, _ = strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	case strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded"):
		call.Params, _ = url.ParseQuery(string(body))
		call.Action = call.Params.Get("Action")
		if call.Action == "AssumeRoleWithWebIdentity" {
			call.Service = "sts"
		}
	default:
		call.Params = req.URL.Query()
		call.Action = restAction(call.Service, req)
	}
	call.Mutating = !slices.ContainsFunc([]string{"Describe", "Get", "List", "Head", "AssumeRole", "Lookup", "Simulate"},
		func(prefix string) bool { return strings.HasPrefix(call.Action, prefix) })
	return call
}

// rest are calls of services whose actions are methods and paths.
var rest = []struct {
	service, method string
	path            *regexp.Regexp
	query, action   string
}{
	{"route53", "POST", regexp.MustCompile(`/hostedzone$`), "", "CreateHostedZone"},
	{"route53", "GET", regexp.MustCompile(`/hostedzone$`), "", "ListHostedZones"},
	{"route53", "GET", regexp.MustCompile(`/hostedzonesbyvpc$`), "", "ListHostedZonesByVPC"},
	{"route53", "GET", regexp.MustCompile(`/hostedzonesbyname$`), "", "ListHostedZonesByName"},
	{"route53", "GET", regexp.MustCompile(`/hostedzone/[^/]+/rrset$`), "", "ListResourceRecordSets"},
	{"route53", "POST", regexp.MustCompile(`/hostedzone/[^/]+/rrset/?$`), "", "ChangeResourceRecordSets"},
	{"route53", "POST", regexp.MustCompile(`/hostedzone/[^/]+/associatevpc$`), "", "AssociateVPCWithHostedZone"},
	{"route53", "POST", regexp.MustCompile(`/hostedzone/[^/]+/disassociatevpc$`), "", "DisassociateVPCFromHostedZone"},
	{"route53", "POST", regexp.MustCompile(`/hostedzone/[^/]+/authorizevpcassociation$`), "", "CreateVPCAssociationAuthorization"},
	{"route53", "GET", regexp.MustCompile(`/hostedzone/[^/]+$`), "", "GetHostedZone"},
	{"route53", "DELETE", regexp.MustCompile(`/hostedzone/[^/]+$`), "", "DeleteHostedZone"},
	{"route53", "GET", regexp.MustCompile(`/tags/hostedzone/[^/]+$`), "", "ListTagsForResource"},
	{"route53", "POST", regexp.MustCompile(`/tags/hostedzone/[^/]+$`), "", "ChangeTagsForResource"},
	{"ram", "POST", regexp.MustCompile(`^/createresourceshare$`), "", "CreateResourceShare"},
	{"ram", "POST", regexp.MustCompile(`^/getresourceshares$`), "", "GetResourceShares"},
	{"ram", "DELETE", regexp.MustCompile(`^/deleteresourceshare$`), "", "DeleteResourceShare"},
	{"s3", "GET", regexp.MustCompile(`^/$`), "", "ListBuckets"},
	{"s3", "GET", regexp.MustCompile(`^/[^/]+/?$`), "versions", "ListObjectVersions"},
	{"s3", "GET", regexp.MustCompile(`^/[^/]+/?$`), "uploads", "ListMultipartUploads"},
	{"s3", "GET", regexp.MustCompile(`^/[^/]+/?$`), "list-type", "ListObjectsV2"},
	{"s3", "POST", regexp.MustCompile(`^/[^/]+/?$`), "delete", "DeleteObjects"},
	{"s3", "PUT", regexp.MustCompile(`^/[^/]+/?$`), "encryption", "PutBucketEncryption"},
	{"s3", "PUT", regexp.MustCompile(`^/[^/]+/?$`), "", "CreateBucket"},
	{"s3", "DELETE", regexp.MustCompile(`^/[^/]+/?$`), "", "DeleteBucket"},
	{"s3", "POST", regexp.MustCompile(`^/[^/]+/.+$`), "uploads", "CreateMultipartUpload"},
	{"s3", "POST", regexp.MustCompile(`^/[^/]+/.+$`), "uploadId", "CompleteMultipartUpload"},
	{"s3", "PUT", regexp.MustCompile(`^/[^/]+/.+$`), "uploadId", "UploadPart"},
	{"s3", "PUT", regexp.MustCompile(`^/[^/]+/.+$`), "", "PutObject"},
	{"s3", "GET", regexp.MustCompile(`^/[^/]+/.+$`), "", "GetObject"},
	{"s3", "DELETE", regexp.MustCompile(`^/[^/]+/.+$`), "uploadId", "AbortMultipartUpload"},
	{"s3", "DELETE", regexp.MustCompile(`^/[^/]+/.+$`), "", "DeleteObject"},
	{"s3", "HEAD", regexp.MustCompile(`^/`), "", "Head"},
}

func restAction(service string, req *http.Request) string {
	for _, rule := range rest {
		if rule.service == service && rule.method == req.Method && rule.path.MatchString(req.URL.Path) && (rule.query == "" || req.URL.Query().Has(rule.query)) {
			return rule.action
		}
	}
	return req.Method + " " + req.URL.Path
}
