package reasons

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, text string) (List, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reasons.tsv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func TestRead(t *testing.T) {
	t.Run("When there is no file it should give no reasons", func(t *testing.T) {
		if l, err := Read(""); l != nil || err != nil {
			t.Fatal(l, err)
		}
	})
	t.Run("When a line lacks a reason it should name the line", func(t *testing.T) {
		for _, text := range []string{"#\n\na\tb\tc\td\n", "#\n\na\tb\tc\td\t \n"} {
			if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), "reasons.tsv:3: want set") {
				t.Fatal(err)
			}
		}
	})
	t.Run("When several fit it should give the first, and tell which were of no use", func(t *testing.T) {
		l, err := read(t, "default\tHostedCluster\tspec.dns*\trequired\tfirst\n*\t*\t*\trequired\tsecond\n*\tNodePool\t*\t*\tthird\n")
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := l.For("default", "HostedCluster", "spec.dns.baseDomain", "required"); !ok || text != "first" {
			t.Fatal(text, ok)
		}
		if text, ok := l.For("techpreview", "HostedCluster", "spec.dns.baseDomain", "required"); !ok || text != "second" {
			t.Fatal(text, ok)
		}
		if text, ok := l.For("default", "HostedCluster", "spec.dns.baseDomain", "type"); ok {
			t.Fatal(text)
		}
		if unused := l.Unused(); len(unused) != 1 || unused[0].String() != "* NodePool * *" {
			t.Fatal(unused)
		}
	})
}
