package browser

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/assets"
	"hcp.internal/platform/internal/console/consoletest"
	"hcp.internal/platform/internal/console/server"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	assets.Files = os.DirFS("../../internal/console/assets/dist") // as it lies there, so that pages can be changed and looked at without building Go
	if os.Getenv(testenv.BinaryEnv) == "" {                       // of the repository, not of this module
		path, err := filepath.Abs(filepath.Join("../../bin/kubernetes", testenv.KubernetesVersion, "kube"))
		if err != nil {
			panic(err)
		}
		os.Setenv(testenv.BinaryEnv, path)
	}
	os.Exit(testenv.Main(m))
}

// axe finds what people with disabilities would stumble over: axe-core of npm, as published.
//
//go:embed testdata/axe.min.js
var axe string

// pictures are where docs/console.md has them.
const pictures = "../../docs/images/console"

// console is one that runs, and can be stopped and started again at the same address.
type console struct {
	t       testing.TB
	world   *world.World
	gate    *access.Own
	address string
	srv     *http.Server
}

func (c *console) start() {
	l, err := (&net.ListenConfig{}).Listen(c.t.Context(), "tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.address = l.Addr().String()
	s := &server.Server{World: c.world, Gate: c.gate, Log: logr.Discard(), Clock: clock.RealClock{}, Hosts: []string{c.address}, Where: "management-eu-1"}
	c.srv = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = c.srv.Serve(l) }()
}

func (c *console) stop() { _ = c.srv.Close() }

// tab is a page of Chromium, with what it complained about and whom it asked.
type tab struct {
	ctx   context.Context
	t     testing.TB
	c     *console
	mu    sync.Mutex
	bad   []string
	asked map[string]bool
	// received are the bytes of all answers, as they came over the wire.
	received float64
	// trace is what was heard of the page's tasks while they were traced, see busiest.
	trace  []traced
	ending chan struct{}
}

const patience = 90 * time.Second

func open(t testing.TB, c *console) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("no chromium: run hack/install-deps.sh chromium")
	}
	// The folder of the profile is a new one of chromedp's, which it removes when the last process of the browser is gone.
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	alloc, cancelAlloc := chromedp.NewExecAllocator(t.Context(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { cancel(); cancelAlloc() })
	out := &tab{ctx: ctx, t: t, c: c, asked: map[string]bool{}}
	if err := chromedp.Do(ctx); err != nil { // starts it, and a limit of this call would be one of the browser's life
		t.Fatalf("starting %s: %v", path, err)
	}
	if err := chromedp.Listen(ctx, out.hear); err != nil {
		t.Fatal(err)
	}
	out.run(send(log.Enable, cdp.Empty{}), send(network.Enable, network.EnableParams{}), send(runtime.Enable, cdp.Empty{}), out.size(1440, 900))
	return out
}

// hear keeps what is of interest of the browser's events.
func (b *tab) hear(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "Failed to load resource") {
			b.bad = append(b.bad, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.bad = append(b.bad, "exception: "+text)
	case *tracing.EventDataCollected:
		for _, raw := range e.Value {
			if one := (traced{}); json.Unmarshal([]byte(raw), &one) == nil && (one.Name == threadName || strings.HasSuffix(one.Name, task)) {
				b.trace = append(b.trace, one)
			}
		}
	case *tracing.EventTracingComplete:
		close(b.ending)
	case *network.EventLoadingFinished:
		b.received += e.EncodedDataLength
	case *network.EventRequestWillBeSent:
		b.asked[e.Request.URL] = true
	}
}

// step is one that gives nothing back.
type step = chromedp.Action[chromedp.Void]

// send is a command of the protocol without an answer.
func send[P, R any](command cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (b *tab) size(w, h int64) step { return chromedp.EmulateViewport(w, h) }

func (b *tab) run(steps ...step) {
	b.t.Helper()
	get(b, chromedp.Steps(steps...))
}

// get runs what gives something back.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		last, cancelLast := context.WithTimeout(b.ctx, 10*time.Second)
		defer cancelLast()
		text, _ := chromedp.Run(last, chromedp.Evaluate[string](`location.href+"\n"+document.body.innerText.slice(0,1500)`))
		b.t.Fatalf("%v; the page says:\n%s\nand complained: %v", err, text, b.complaints())
	}
	return out
}

// eval is what an expression of the page gives.
func eval[T any](b *tab, expression string, opts ...chromedp.EvaluateOption) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](expression, opts...))
}

// shown waits until something can be seen.
func shown(selector string) step { return chromedp.WaitVisible(chromedp.CSS(selector)) }

func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.bad...)
}

// foreign are requests to somebody else.
func (b *tab) foreign() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for url := range b.asked {
		if !strings.HasPrefix(url, "http://"+b.c.address+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			out = append(out, url)
		}
	}
	return out
}

// signIn opens the console by a fresh link.
func (b *tab) signIn() {
	b.t.Helper()
	b.run(chromedp.Navigate("http://"+b.c.address+"/#ticket="+b.c.gate.Ticket()), shown(".top nav"))
}

// visit goes to a page without loading the program again, and waits for what it shows.
func (b *tab) visit(path, until string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`history.pushState(null,'',%q),dispatchEvent(new PopStateEvent('popstate'))`, path))
	b.run(shown(until))
}

func (b *tab) text(selector string) string {
	b.t.Helper()
	return get(b, chromedp.Text(chromedp.CSS(selector)))
}

// shoot takes a picture of what is seen. With UPDATE=true those with a name go into docs.
func (b *tab) shoot(name string) {
	b.t.Helper()
	raw := get(b, chromedp.CaptureScreenshot())
	dir := os.Getenv("PICTURES")
	if os.Getenv("UPDATE") == "true" && !strings.HasPrefix(name, "_") {
		dir = pictures
	}
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), small(b.t, raw), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// small is a picture with the 256 colours that it has most of: a third of the bytes, and nobody sees it.
func small(t testing.TB, raw []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.NRGBA]int{}
	area := from.Bounds()
	at := func(x, y int) color.NRGBA { return color.NRGBAModel.Convert(from.At(x, y)).(color.NRGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.NRGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette := color.Palette{}
	for _, c := range most[:min(256, len(most))] {
		palette = append(palette, c)
	}
	nearest := map[color.NRGBA]uint8{}
	out := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := at(x, y)
			i, ok := nearest[c]
			if !ok {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// findings are those of axe, a line each.
func (b *tab) findings() []string {
	b.t.Helper()
	eval[int](b, axe+`;0`)
	raw := eval[string](b, `axe.run(document,{runOnly:['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']}).then(r=>JSON.stringify(r.violations.map(v=>v.id+': '+v.nodes.slice(0,3).map(n=>n.html.slice(0,160)+' '+(n.any[0]||n.all[0]||n.none[0]||{}).message).join(' | '))))`,
		chromedp.EvalAwaitPromise)
	var out []string
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

var (
	once   sync.Once
	seeded client.WithWatch
)

// newConsole starts one of the seeded fleet.
func newConsole(t *testing.T) *console {
	t.Helper()
	env := testenv.Start(t)
	once.Do(func() { c := env.Client(t, consoletest.Scheme()); consoletest.Fleet(t, env, c); seeded = c })
	c := &console{t: t, world: world.New(), gate: &access.Own{User: "alice", Client: seeded}, address: "127.0.0.1:0"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.world.Run(ctx, env.Client(t, consoletest.Scheme()), "", logr.Discard()) }()
	t.Cleanup(func() { cancel(); <-done })
	NewWithT(t).Eventually(c.world.Synced, patience).Should(BeTrue())
	c.start()
	t.Cleanup(c.stop)
	return c
}

// pages are all that there are, and what is on them once they are read.
var pages = []struct{ name, path, until string }{
	{"fleet", "/?show=all", ".tile[href='/certificates']"},
	{"cluster", "/hc/production/payments-eu?span=all", ".why.broken .chain"},
	{"_pools", "/hc/production/payments-eu?tab=pools", ".machines tbody tr"},
	{"_conditions", "/hc/production/payments-eu?tab=conditions", ".conditions tbody tr"},
	{"_packages-of", "/hc/production/payments-eu?tab=packages", ".table tbody tr"},
	{"_events-of", "/hc/production/payments-eu?tab=events", ".events li"},
	{"_yaml", "/hc/production/payments-eu?tab=yaml", ".yaml"},
	{"_upgrading", "/hc/production/search", ".node"},
	{"_well", "/hc/production/orders", ".title h1"},
	{"_rollouts", "/rollouts", ".rollout"},
	{"rollout", "/rollout/logging-agent", ".cell.flight"},
	{"_whatif", "/rollout/logging-agent?fail=production%2Fsearch", ".cell.fails"},
	{"_packages", "/packages", ".table tbody tr"},
	{"package", "/pkg/production-routing/logging-agent", ".phase.failing"},
	{"_collision", "/pkg/production-sessions/metrics", ".collisions li"},
	{"_certificates-of", "/hc/production/payments-eu?tab=certificates", ".certificates tbody tr"},
	{"_list", "/hc/production/payments-eu?graph=list", ".table tbody tr"},
	{"_certificates", "/certificates", ".certificates tbody tr"},
	{"_events", "/events", ".events li"},
	{"_about", "/about", ".facts"},
	{"_nothing", "/hc/production/nobody", ".empty h1"},
}

// beyond are the elements because of which a page is wider than the window, if it is. What scrolls by itself may hold wider ones.
const beyond = `document.documentElement.scrollWidth <= innerWidth + 1 ? [] : ['scrolls ' + document.documentElement.scrollWidth].concat([...document.querySelectorAll('body *')]
	.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .tabs, .top nav')).slice(0, 10).map(e => e.outerHTML.slice(0, 120) + ' ends at ' + e.getBoundingClientRect().right))`

func TestPages(t *testing.T) {
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	for _, look := range []struct {
		suffix        string
		width, height int64
		scheme        string
	}{{"", 1440, 900, "light"}, {"-dark", 1440, 900, "dark"}, {"-phone", 390, 844, "light"}} {
		for _, p := range pages {
			t.Run(fmt.Sprintf("When page %s is opened it should be shown, without findings (%s%s)", p.path, look.scheme, look.suffix), func(t *testing.T) {
				g := NewWithT(t)
				b.t = t
				b.run(b.size(look.width, look.height), send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
				b.visit(p.path, p.until)
				g.Expect(eval[[]string](b, beyond)).To(BeEmpty(), "the page is wider than the window")
				name := p.name + look.suffix
				if look.suffix != "" && name != "cluster-dark" && name != "fleet-phone" && !strings.HasPrefix(name, "_") {
					name = "_" + name
				}
				b.shoot(name)
				g.Expect(b.findings()).To(BeEmpty())
				g.Expect(b.complaints()).To(BeEmpty())
			})
		}
	}
	t.Run("When all pages were opened nobody else should have been asked", func(t *testing.T) {
		NewWithT(t).Expect(b.foreign()).To(BeEmpty())
	})
}

func TestHostileTexts(t *testing.T) {
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	for path, until := range map[string]string{
		"/?show=all&q=hostile": ".row .cause", "/hc/staging/hostile": ".why h2", "/hc/staging/hostile?tab=conditions": ".conditions tbody tr", "/hc/staging/hostile?tab=events": ".events li",
		"/packages?q=hostile": ".table tbody tr", "/pkg/staging-hostile/hostile": ".why h2", "/events?q=hostile": ".events li",
		"/?q=%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D%27owned%27%22%3E%20nobody": ".empty", "/hc/%3Cscript%3E/x": ".empty h1",
	} {
		t.Run("When texts on "+path+" mean harm they should be shown as text", func(t *testing.T) {
			g := NewWithT(t)
			b.t = t
			b.visit(path, until)
			g.Expect(get(b, chromedp.Title())).NotTo(ContainSubstring("owned"))
			g.Expect(eval[int](b, `document.querySelectorAll('#app img, #app script, #app [onerror]').length`)).To(BeZero())
			g.Expect(b.complaints()).To(BeEmpty())
		})
	}
}

func TestStreamIsCut(t *testing.T) {
	g := NewWithT(t)
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	b.visit("/?show=all", ".row .badge")
	b.run(shown(".live:not(.lost)"))
	c.stop()
	b.run(shown(".live.lost"))
	g.Expect(b.text(".live.lost")).To(ContainSubstring("Stale since"))
	// Meanwhile a hosted cluster breaks.
	breakCluster(t, "mail", "CannotSchedule")
	t.Cleanup(func() { repairCluster(t, "mail") })
	c.start()
	b.run(shown(".live:not(.lost)"))
	g.Eventually(func() string { return b.text(`.gbody`) }, patience).Should(ContainSubstring("CannotSchedule"))
}

func TestLive(t *testing.T) {
	g := NewWithT(t)
	c := newConsole(t)
	b := open(t, c)
	b.signIn()
	b.visit("/hc/production/ledger", ".why.well")
	breakCluster(t, "ledger", "CannotSchedule")
	t.Cleanup(func() { repairCluster(t, "ledger") })
	began := time.Now()
	b.run(shown(".why:not(.well) h2"))
	t.Logf("the cause was on the page after %s", time.Since(began).Round(10*time.Millisecond))
	g.Expect(b.text(".why h2")).NotTo(BeEmpty())
}

func breakCluster(t *testing.T, name, reason string) {
	t.Helper()
	setCondition(t, name, metav1.ConditionFalse, reason, reason+": 0 of 3 members fit")
}

func repairCluster(t *testing.T, name string) {
	t.Helper()
	setCondition(t, name, metav1.ConditionTrue, hyperv1.AsExpectedReason, "")
}

func setCondition(t *testing.T, name string, status metav1.ConditionStatus, reason, message string) {
	t.Helper()
	g := NewWithT(t)
	ctx := context.Background() // also when the test ends
	g.Eventually(func() error {
		hc := &hyperv1.HostedCluster{}
		if err := seeded.Get(ctx, client.ObjectKey{Namespace: consoletest.Production, Name: name}, hc); err != nil {
			return err
		}
		for _, kind := range []string{hyperv1.EtcdAvailable, hyperv1.HostedClusterAvailable} {
			conditions.Set(&hc.Status.Conditions, time.Now(), conditions.New(kind, status, reason, message))
		}
		return seeded.Status().Update(ctx, hc)
	}, patience).Should(Succeed())
}
