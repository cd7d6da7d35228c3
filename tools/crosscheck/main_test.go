package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":              "module example.test/x\n\ngo 1.21\n",
		"good/main.go":        "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(0) }\n",
		"bad/main.go":         "package main\n\nimport \"syscall\"\n\nfunc main() { println(syscall.CLONE_NEWNS) }\n",
		"split/main.go":       "package main\n\nfunc main() { local() }\n",
		"split/main_linux.go": "package main\n\nfunc local() {}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := newSources(dir)
	for name, tc := range map[string]struct{ platform, pattern, want string }{
		"When a command uses nothing of one system it should pass":    {"darwin/arm64", "./good", ""},
		"When it uses a call of Linux it should name it":              {"darwin/arm64", "./bad", "undefined: syscall.CLONE_NEWNS"},
		"When the system has the call it should pass":                 {"linux/arm64", "./bad", ""},
		"When a function has a file for Linux alone it should say so": {"windows/amd64", "./split", "undefined: local"},
		"When the platform is none it should say so":                  {"darwin", "./good", "want GOOS/GOARCH"},
	} {
		t.Run(name, func(t *testing.T) {
			err := files.check(tc.platform, tc.pattern)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
