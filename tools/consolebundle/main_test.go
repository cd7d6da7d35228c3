package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// When the sources of the web console change, the bundle that is committed should, too.
func TestBundle(t *testing.T) {
	t.Chdir("..") // as the program is called
	built, err := build(sources)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadDir(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if len(committed) != len(built) {
		t.Errorf("%s has %d files, and %d are built", bundle, len(committed), len(built))
	}
	packed := 0
	for name, raw := range built {
		have, err := os.ReadFile(filepath.Join(bundle, name))
		if err != nil || !bytes.Equal(have, raw) {
			t.Errorf("%s of the bundle is not what is built of the sources: run `cd tools && go run ./consolebundle` and commit it (%v)", name, err)
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(raw); err != nil || z.Close() != nil {
			t.Fatal("compressing: ", err)
		}
		packed += b.Len()
	}
	t.Logf("%d bytes are sent for the first page, compressed", packed)
	if limit := 90_000; packed > limit {
		t.Errorf("the bundle has %d bytes when it is compressed, more than %d: people wait for it", packed, limit)
	}
}

// When the program for the browser is written, it should make no markup of texts, and ask nobody but the console.
func TestManners(t *testing.T) {
	t.Chdir("..") // as the program is called
	err := filepath.WalkDir(filepath.Join(sources, "src"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "document.write", "eval(", "new Function", "http://", "https://", "document.cookie", "@import", "url("} {
			if strings.Contains(string(raw), bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
