package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// drawTimeout bounds how long the browser may take for all diagrams.
const drawTimeout = 3 * time.Minute

// drawingPage draws what it is given, one after the other, and then says what it has drawn. Text of pictures is text and not HTML, so that it has the
// fonts of readers; identifiers are those of the checksums, because pages have several.
const drawingPage = `<!doctype html><meta charset="utf-8"><body><script src="%s"></script><script>
(async function () {
  var drawn = {}, todo = %s;
  mermaid.initialize({startOnLoad: false, theme: "neutral", htmlLabels: false, flowchart: {htmlLabels: false}, deterministicIds: true, handDrawnSeed: 1, fontFamily: "sans-serif"});
  for (var name of Object.keys(todo).sort()) {
    try { drawn[name] = (await mermaid.render("d" + name, todo[name])).svg; } catch (e) { drawn[name] = "Error: " + e; }
  }
  document.body.textContent = "DRAWN" + btoa(unescape(encodeURIComponent(JSON.stringify(drawn)))) + "END";
})();
</script>`

var drawnText = regexp.MustCompile(`DRAWN([A-Za-z0-9+/=]*)END`)

// drawAll draws the diagrams of all pages that have no picture yet with mermaid, a file of JavaScript, in a browser, and removes pictures of no diagram.
func drawAll(ctx context.Context, root, browser, mermaid string) error {
	pages, err := read(os.DirFS(root))
	if err != nil {
		return err
	}
	todo, wanted, have := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, p := range pages {
		have[p.path] = true
	}
	for _, p := range pages {
		if !strings.HasSuffix(p.path, ".md") {
			continue
		}
		_, sources := sourcesOf(parse(markdown(), p).root, p.raw)
		for _, source := range sources {
			name := pictureOf(source)
			if wanted[name] = true; !have[name] {
				todo[strings.TrimSuffix(path.Base(name), ".svg")] = source
			}
		}
	}
	for name := range have {
		if strings.HasPrefix(name, drawn) && !wanted[name] {
			if err := os.Remove(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				return err
			}
		}
	}
	if len(todo) == 0 {
		return nil
	}
	pictures, err := drawInBrowser(ctx, browser, mermaid, todo)
	if err != nil {
		return err
	}
	folder := filepath.Join(root, filepath.FromSlash(drawn))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(todo)) {
		picture := pictures[name]
		if !strings.HasPrefix(picture, "<svg") {
			errs = append(errs, fmt.Errorf("this diagram can't be drawn: %s\n%s", picture, todo[name]))
			continue
		}
		errs = append(errs, os.WriteFile(filepath.Join(folder, name+".svg"), []byte(picture+"\n"), 0o644))
	}
	return errors.Join(errs...)
}

// drawInBrowser returns pictures by the names of what is to be drawn.
func drawInBrowser(ctx context.Context, browser, mermaid string, todo map[string]string) (map[string]string, error) {
	script, err := filepath.Abs(mermaid)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(todo)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "diagrams")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	page := filepath.Join(dir, "page.html")
	if err := os.WriteFile(page, fmt.Appendf(nil, drawingPage, html.EscapeString("file://"+script), list), 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, drawTimeout)
	defer cancel()
	// It reads nothing but these two files; as root it has no sandbox.
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+dir, "--virtual-time-budget=120000", "--dump-dom", "file://"+page)
	var said bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &said, 10*time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", browser, err, said.String())
	}
	found := drawnText.FindSubmatch(out)
	if found == nil {
		return nil, fmt.Errorf("%s ended before all was drawn:\n%s", browser, said.String())
	}
	var raw []byte
	if err := json.Unmarshal(fmt.Appendf(nil, "%q", found[1]), &raw); err != nil { // of base64
		return nil, err
	}
	pictures := map[string]string{}
	return pictures, json.Unmarshal(raw, &pictures)
}
