// Command crosscheck type-checks commands of the module above for other systems than the one it runs on.
//
//	go run ./crosscheck -dir .. -platforms darwin/arm64,windows/amd64 ./cmd/hypershift
//
// A cross build would find the same and take minutes for each system, as every dependency has to be compiled. This reads them, without the
// bodies of their functions, and takes seconds.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("dir", ".", "folder of the module")
	platforms := flag.String("platforms", "darwin/arm64,windows/amd64", "systems to check for, as GOOS/GOARCH, separated by commas")
	flag.Parse()
	var errs []error
	for _, platform := range strings.Split(*platforms, ",") {
		errs = append(errs, check(*dir, platform, flag.Args()...))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check type-checks the packages and all that they import, and returns what is wrong with files below dir.
func check(dir, platform string, patterns ...string) error {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("platform %q: want GOOS/GOARCH", platform)
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolving %s: %w", dir, err)
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:      packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes,
		Dir:       root,
		Env:       append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=off"),
		ParseFile: declarations(root),
	}, patterns...)
	if err != nil {
		return fmt.Errorf("loading for %s: %w", platform, err)
	}
	var wrong []string
	seen := map[string]bool{}
	packages.Visit(loaded, nil, func(pkg *packages.Package) {
		for _, e := range pkg.Errors {
			// What isn't ours has no bodies, so its imports seem unused.
			ours := strings.HasPrefix(e.Pos, root+string(filepath.Separator)) || e.Kind == packages.ListError
			if text := fmt.Sprintf("%s: %s", platform, e); ours && !seen[text] {
				seen[text] = true
				wrong = append(wrong, text)
			}
		}
	})
	if wrong != nil {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// declarations parses files, those that aren't below root without the bodies of functions.
func declarations(root string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	var mu sync.Mutex // a parser takes memory many times the file's: a few at a time are enough
	return func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
		mu.Lock()
		defer mu.Unlock()
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if file == nil || strings.HasPrefix(name, root+string(filepath.Separator)) {
			return file, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil
			}
		}
		return file, err
	}
}
