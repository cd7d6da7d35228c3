// Command consolebundle builds the program of the web console for the browser, from internal/console/web into internal/console/assets/dist:
//
//	cd tools && go run ./consolebundle
//
// It needs Go alone: esbuild is a library here, and what the program is linked with lies in internal/console/web/vendor. The same sources give the same
// bytes; the test beside this file builds again and compares with what is committed.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

// Where sources are and where the bundle goes, from the folder tools.
const (
	sources = "../internal/console/web"
	bundle  = "../internal/console/assets/dist"
)

func main() {
	files, err := build(sources)
	if err == nil {
		err = write(bundle, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// linked are the libraries of the program, and where they lie in the sources.
var linked = map[string]string{
	"preact": "vendor/preact.mjs", "preact/hooks": "vendor/hooks.mjs", "preact/jsx-runtime": "vendor/jsxRuntime.mjs", "@preact/signals": "vendor/signals.mjs",
	"@preact/signals-core": "vendor/signals-core.mjs",
}

// build gives the files of the bundle by their names.
func build(dir string) (map[string][]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	alias := map[string]string{}
	for name, path := range linked {
		alias[name] = "./" + path
	}
	out := map[string][]byte{}
	for _, entry := range []string{"src/main.tsx", "src/app.css"} {
		name := "app.js"
		if filepath.Ext(entry) == ".css" {
			name = "app.css"
		}
		result := api.Build(api.BuildOptions{AbsWorkingDir: dir, EntryPoints: []string{entry}, Outfile: name, Bundle: true, Alias: alias, Format: api.FormatESModule, Target: api.ES2022,
			JSX: api.JSXAutomatic, JSXImportSource: "preact", MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone, Charset: api.CharsetUTF8})
		if len(result.Errors) > 0 {
			var all []error
			for _, text := range api.FormatMessages(result.Errors, api.FormatMessagesOptions{}) {
				all = append(all, errors.New(text))
			}
			return nil, errors.Join(all...)
		}
		out[name] = result.OutputFiles[0].Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		if out[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, raw := range files {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}
