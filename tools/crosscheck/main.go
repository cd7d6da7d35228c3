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
	root, err := filepath.Abs(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "resolving the folder:", err)
		os.Exit(1)
	}
	files := newSources(root)
	var errs []error
	for _, platform := range strings.Split(*platforms, ",") {
		errs = append(errs, files.check(platform, flag.Args()...))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sources are files that were parsed once for all systems: most belong to each.
type sources struct {
	root   string // of the module
	fset   *token.FileSet
	mu     sync.Mutex // a parser takes memory many times the file's: one at a time is enough
	parsed map[string]*ast.File
}

func newSources(root string) *sources {
	return &sources{root: root, fset: token.NewFileSet(), parsed: map[string]*ast.File{}}
}

// check type-checks the packages and all that they import, and returns what is wrong with files below the root.
func (s *sources) check(platform string, patterns ...string) error {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("platform %q: want GOOS/GOARCH", platform)
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:      packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes,
		Dir:       s.root,
		Fset:      s.fset,
		Env:       append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=off"),
		ParseFile: s.declarations,
	}, patterns...)
	if err != nil {
		return fmt.Errorf("loading for %s: %w", platform, err)
	}
	var wrong []string
	seen := map[string]bool{}
	packages.Visit(loaded, nil, func(pkg *packages.Package) {
		for _, e := range pkg.Errors {
			// What isn't ours has no bodies, so its imports seem unused.
			ours := strings.HasPrefix(e.Pos, s.root+string(filepath.Separator)) || e.Kind == packages.ListError
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

// declarations parses a file, without the bodies of functions if it isn't below the root.
func (s *sources) declarations(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file := s.parsed[name]; file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if file == nil || err != nil {
		return file, err
	}
	if !strings.HasPrefix(name, s.root+string(filepath.Separator)) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil
			}
		}
	}
	s.parsed[name] = file
	return file, nil
}
