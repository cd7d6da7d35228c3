package process

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// When a file of ours makes a manager, it should do so by NewManager, and a test that can't should at least use the plain queue: whoever forgets it gets
// the one that may not end.
func TestManagers(t *testing.T) {
	g := NewWithT(t)
	root := filepath.Join("..", "..", "..")
	found := 0
	g.Expect(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || filepath.Join(root, "internal", "kube", "process", "manager.go") == path {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		starts, plain := calls(file)
		if starts {
			found++
			g.Expect(path).To(HaveSuffix("_test.go"), "programs use process.NewManager")
			g.Expect(plain).To(BeTrue(), "%s makes a manager without process.Queue", path)
		}
		return nil
	})).To(Succeed())
	g.Expect(found).To(BeNumerically(">=", 5), "the walk sees the managers that there are")
}

// calls says whether a file calls controller-runtime's constructor of managers, and Queue.
func calls(file *ast.File) (starts, plain bool) {
	packages := map[string]string{}
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		switch packages[from.Name] + "." + selector.Sel.Name {
		case "sigs.k8s.io/controller-runtime.NewManager", "sigs.k8s.io/controller-runtime/pkg/manager.New":
			starts = true
		case "hcp.internal/platform/internal/kube/process.Queue":
			plain = true
		}
		return true
	})
	return starts, plain
}
