package capi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/contract/names"
)

const (
	// ExitDifferent is the exit code of verify if the two views differ.
	ExitDifferent = 2

	// parallel is how many requests are under way at once.
	parallel = 8
	// attempts is how often a request is sent if the answers differ: objects change between two requests.
	attempts = 4
	// maxCompared is the largest answer that is compared.
	maxCompared = 256 << 20
	// maxDifferences is how many differences are told.
	maxDifferences = 100
	// requestTimeout bounds one request.
	requestTimeout = 2 * time.Minute
)

// Report is what verify prints.
type Report struct {
	Requests    int          `json:"requests"`    // that were sent both ways
	Equal       int          `json:"equal"`       // answers that are the same byte by byte
	Names       int          `json:"names"`       // answers that differ in the names of groups alone
	Translated  int          `json:"translated"`  // names that differ, in all of them
	Different   int          `json:"different"`   // answers that differ otherwise
	Skipped     int          `json:"skipped"`     // requests that only the real client can make: watches without an end, exec, deletions whose options are not JSON and so can't be dry runs
	Differences []Difference `json:"differences"` // the first 100
}

// Difference is an answer that is not what it should be. Contents of answers are never told.
type Difference struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Accept string `json:"accept,omitempty"`
	// Check is what failed: status, content-type, bytes, length, way back, translated in the wrong place, not translated.
	Check string `json:"check"`
	At    string `json:"at"`
}

type verifyOptions struct {
	options
	traffic string
	limit   int
	write   bool
	format  output.Format
}

func verifyCommand() *cobra.Command {
	o := &verifyOptions{options: options{namespace: "clusters"}, limit: 20, write: true, format: output.Text}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the proxy's view with the stored objects, byte by byte",
		Long: `Send the same requests directly to the management cluster, under the stored names, and through the proxy under standard names, and compare
the answers: status, content type, and every byte. They may differ only in group names, and only where a group name belongs; translating
the proxy's answer back must give what is stored.

The requests are derived from the objects in the management cluster, or read from a file that "hypershift capi proxy --record" wrote.
Nothing is changed: writes are dry runs. Contents are never printed. What can't be compared that way is skipped: exec, watches without an end, and
deletions whose options are not JSON.

Exit code: 0 if nothing differs, 2 if something does, 1 if that could not be determined.`,
		Example: `  hypershift capi verify --name demo
  hypershift capi verify -o json
  hypershift capi proxy --record traffic.jsonl &  # work with it, then
  hypershift capi verify --traffic traffic.jsonl`,
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	cmd.Flags().Lookup("name").Usage = "Hosted cluster whose objects are compared (default: those of all namespaces)"
	cmd.Flags().StringVar(&o.traffic, "traffic", "", "File of recorded requests to replay, one a line as JSON (default: requests made from what there is)")
	cmd.Flags().IntVar(&o.limit, "limit", o.limit, "Number of objects of each kind to request by name")
	cmd.Flags().BoolVar(&o.write, "writes", o.write, "Also send patches and deletions, as dry runs")
	_ = cmd.MarkFlagFilename("traffic", "jsonl", "json") // only fails for a flag that isn't there
	o.format.AddFlag(cmd)
	return cmd
}

func (o *verifyOptions) run(cmd *cobra.Command) error {
	if o.limit < 0 || o.limit > 10000 {
		return fmt.Errorf("--limit %d: must be between 0 and 10000", o.limit)
	}
	ctx := cmd.Context()
	view, err := o.view(ctx)
	if err != nil {
		return err
	}
	if !view.Private {
		return errors.New("there is nothing to compare: the management cluster has no group " + translate.Private + "; install with --private-capi-types")
	}
	requests, err := o.requests(ctx, view)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, 0)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan struct{})
	token := newToken()
	go func() {
		defer close(served)
		_ = serve(serving, listener, guarded(token, view.translated)) // it ends because it is told to
	}()
	defer func() {
		stop()
		<-served
	}()
	v := &verifier{view: view, address: "http://" + listener.Addr().String(), token: token, report: Report{Differences: []Difference{}}}
	if err := v.all(ctx, requests); err != nil {
		return err
	}
	if err := v.report.print(cmd.OutOrStdout(), o.format); err != nil {
		return err
	}
	if v.report.Different > 0 {
		return &ExitError{Code: ExitDifferent, Err: fmt.Errorf("%d of %d answers differ", v.report.Different, v.report.Requests)}
	}
	return nil
}

func (o *verifyOptions) requests(ctx context.Context, view *View) ([]Request, error) {
	if o.traffic != "" {
		f, err := os.Open(o.traffic)
		if err != nil {
			return nil, fmt.Errorf("--traffic: %w", err)
		}
		defer f.Close()
		requests, err := readTraffic(f)
		if err != nil {
			return nil, fmt.Errorf("--traffic %s: %w", o.traffic, err)
		}
		return requests, nil
	}
	g := &generator{view: view, limit: o.limit, write: o.write}
	if o.name != "" {
		g.scope = "/namespaces/" + names.ControlPlaneNamespace(o.namespace, o.name)
	}
	return g.generate(ctx)
}

func (r *Report) print(w io.Writer, format output.Format) error {
	if format != output.Text {
		return format.Value(w, r)
	}
	if len(r.Differences) > 0 {
		rows := [][]string{{"METHOD", "PATH", "CHECK", "AT"}}
		for _, d := range r.Differences {
			rows = append(rows, []string{d.Method, d.Path, d.Check, d.At})
		}
		if err := output.Table(w, rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d requests both ways: %d answers equal byte by byte, %d but for %d names of groups, %d different; %d skipped\n",
		r.Requests, r.Equal, r.Names, r.Translated, r.Different, r.Skipped)
	return err
}

// verifier sends requests both ways.
type verifier struct {
	view           *View
	address, token string
	report         Report
}

// answered is an answer, as far as it is compared.
type answered struct {
	code        int
	contentType string
	body        []byte
}

// outcome is what came of one request.
type outcome struct {
	skipped bool
	verdict verdict
}

// all sends requests, some at a time, and counts what came of them.
func (v *verifier) all(ctx context.Context, requests []Request) error {
	outcomes := make([]outcome, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range requests {
		group.Go(func() (err error) {
			if outcomes[i], err = v.one(ctx, requests[i]); err != nil {
				return fmt.Errorf("%s %s: %w", requests[i].Method, requests[i].Path, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range outcomes {
		v.report.count(requests[i], outcomes[i])
	}
	return nil
}

func (r *Report) count(req Request, o outcome) {
	if o.skipped {
		r.Skipped++
		return
	}
	r.Requests++
	switch {
	case o.verdict.check != "":
		r.Different++
		if len(r.Differences) < maxDifferences {
			r.Differences = append(r.Differences, Difference{Method: req.Method, Path: req.Path, Accept: req.Accept, Check: o.verdict.check, At: o.verdict.at})
		}
	case o.verdict.names > 0:
		r.Names++
		r.Translated += o.verdict.names
	default:
		r.Equal++
	}
}

// one sends a request both ways, again if the answers differ because something changed between them.
func (v *verifier) one(ctx context.Context, r Request) (outcome, error) {
	path, query, _ := strings.Cut(r.Path, "?")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		query = dryRun(query)
	}
	parsed, err := translate.Parse(r.Method, path, query)
	if err != nil {
		return outcome{}, err
	}
	if parsed.Class == translate.ClassTunnel && parsed.Subresource != "" || parsed.Watch && !strings.Contains(query, "timeoutSeconds=") {
		return outcome{skipped: true}, nil
	}
	if r.Method == http.MethodDelete {
		body, dry := dryRunBody([]byte(r.Body))
		if !dry {
			return outcome{skipped: true}, nil
		}
		r.Body = string(body)
	}
	var last verdict
	for range attempts {
		direct, proxied, err := v.both(ctx, r, &parsed, withQuery(path, query))
		if err != nil {
			return outcome{}, err
		}
		if last = judge(&parsed, direct, proxied); last.check == "" {
			break
		}
	}
	return outcome{verdict: last}, nil
}

func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// dryRun makes sure that a write changes nothing.
func dryRun(query string) string {
	kept := []string{"dryRun=All"}
	for param := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(param, "="); param != "" && !strings.EqualFold(unescaped(name), "dryRun") {
			kept = append(kept, param)
		}
	}
	return strings.Join(kept, "&")
}

func unescaped(s string) string {
	if out, err := url.QueryUnescape(s); err == nil {
		return out
	}
	return s
}

// both sends the request straight, in stored names, and through the proxy.
func (v *verifier) both(ctx context.Context, r Request, parsed *translate.Request, path string) (direct, proxied answered, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	header := http.Header{"User-Agent": {"hypershift-capi-verify"}}
	if r.Accept != "" {
		header.Set("Accept", r.Accept)
	} else {
		header.Set("Accept", typeJSON)
	}
	if r.ContentType != "" {
		header.Set("Content-Type", r.ContentType)
	}
	body := []byte(r.Body)
	stored := body
	switch r.ContentType {
	case "application/json-patch+json":
		if stored, err = translate.JSONPatch(parsed.Body(), nil, stored); err != nil {
			return direct, proxied, err
		}
	default:
		if len(stored) > 0 && json.Valid(stored) {
			if stored, err = translate.Bytes(parsed.Body(), nil, stored); err != nil {
				return direct, proxied, err
			}
		}
	}
	// At once: a watch takes its time, and less changes in between.
	var straight error
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, err := v.view.upstream.Do(ctx, r.Method, withQuery(parsed.Path, parsed.Query), header, stored)
		if err == nil {
			direct, err = read(resp)
		}
		if err != nil {
			straight = fmt.Errorf("direct answer: %w", err)
		}
	}()
	proxied, err = v.proxied(ctx, r.Method, path, header, body)
	<-done
	return direct, proxied, errors.Join(straight, err)
}

func (v *verifier) proxied(ctx context.Context, method, path string, header http.Header, body []byte) (answered, error) {
	req, err := http.NewRequestWithContext(ctx, method, v.address+path, bytes.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	req.Header = header.Clone()
	req.Header.Set("Authorization", "Bearer "+v.token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answered{}, fmt.Errorf("proxied answer: %w", err)
	}
	out, err := read(resp)
	if err != nil {
		return answered{}, fmt.Errorf("proxied answer: %w", err)
	}
	return out, nil
}

// dryRunBody makes a deletion a dry run in its body: where there is one, the API server looks there, and not at the query. false: it can't be made one, as
// the body is no object in JSON, and must not be sent.
func dryRunBody(body []byte) ([]byte, bool) {
	if len(body) == 0 {
		return body, true
	}
	var options map[string]any
	if json.Unmarshal(body, &options) != nil || options == nil {
		return nil, false
	}
	options["dryRun"] = []string{"All"}
	out, err := json.Marshal(options)
	return out, err == nil
}

func read(resp *http.Response) (answered, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCompared+1))
	if err == nil && len(body) > maxCompared {
		err = errors.New("it is larger than 256 MiB: compare one namespace with --name")
	}
	return answered{code: resp.StatusCode, contentType: resp.Header.Get("Content-Type"), body: body}, err
}

// changing is what differs between two answers to the same write, and between two looks at the same collection.
var changing = []*regexp.Regexp{
	regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|deletionTimestamp|time|continue)":( ?)"[^"]*"`),
	regexp.MustCompile(`"(remainingItemCount)":( ?)\d+`),
}

func settled(body []byte) []byte {
	for _, what := range changing {
		body = what.ReplaceAll(body, []byte(`"$1":$2"-"`))
	}
	return body
}

// judge compares two answers.
func judge(r *translate.Request, direct, proxied answered) verdict {
	switch {
	case direct.code != proxied.code:
		return wrong("status", "direct %d, proxied %d", direct.code, proxied.code)
	case direct.contentType != proxied.contentType:
		return wrong("content-type", "direct %q, proxied %q", direct.contentType, proxied.contentType)
	case r.Class == translate.ClassOpenAPI:
		return compareDocuments(r, direct.body, proxied.body)
	case direct.contentType == typeProtobuf:
		return compareProtobuf(r, direct.body, proxied.body)
	}
	plan := r.Answer(false)
	if direct.code >= http.StatusMultipleChoices {
		plan = r.Failure()
	}
	d, p := settled(direct.body), settled(proxied.body)
	if r.Class == translate.ClassTunnel {
		if !bytes.Equal(direct.body, proxied.body) {
			return wrong("bytes", "an answer that is never translated differs")
		}
		return verdict{}
	}
	return compare(d, p, r.Mapped(), func(raw []byte) ([]byte, error) { return translate.Bytes(plan, nil, raw) })
}

// compareDocuments is for OpenAPI, where names are in keys by which maps are sorted: the way back must give the same bytes.
func compareDocuments(r *translate.Request, direct, proxied []byte) verdict {
	again, err := translate.Bytes(r.Answer(false), nil, proxied)
	if err != nil || !bytes.Equal(again, direct) {
		return wrong("way back", "translating the proxied document does not give the direct one")
	}
	return verdict{names: bytes.Count(direct, []byte(translate.Private))}
}

func compareProtobuf(r *translate.Request, direct, proxied []byte) verdict {
	if bytes.Equal(direct, proxied) {
		return verdict{}
	}
	again, err := translate.Protobuf(r.Answer(false), nil, proxied)
	if err != nil || !bytes.Equal(again, direct) {
		return wrong("way back", "translating the proxied message of %d bytes does not give the direct one of %d", len(proxied), len(direct))
	}
	return verdict{names: bytes.Count(direct, []byte(translate.Private))}
}
