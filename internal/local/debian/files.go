package debian

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"hcp.internal/platform/internal/image"
)

// merged are folders that Debian links into /usr, while its packages still name the old places.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// Files are the files of packages, as an image needs them: with everything below /usr, and without what skip says. skip gets paths
// in the image.
func Files(packages []Package, skip func(path string) bool) ([]image.File, error) {
	var out []image.File
	for _, p := range packages {
		err := filepath.WalkDir(p.dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || file == p.dir || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(p.dir, file)
			if err != nil {
				return err
			}
			target := inUsr("/" + rel)
			if skip(target) {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			switch {
			case info.Mode()&fs.ModeSymlink != 0:
				link, err := os.Readlink(file)
				if err != nil {
					return err
				}
				out = append(out, image.File{Path: target, Link: link})
			case info.Mode().IsRegular():
				out = append(out, image.File{Path: target, Source: file, Mode: info.Mode().Perm()})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing the files of %s: %w", p.Name, err)
		}
	}
	return append(out, usrLinks()...), nil
}

// inUsr moves /bin, /lib and the like below /usr.
func inUsr(p string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	for _, m := range merged {
		if first == m {
			return path.Join("/usr", p)
		}
	}
	return p
}

func usrLinks() []image.File {
	var links []image.File
	for _, m := range merged {
		links = append(links, image.File{Path: "/" + m, Link: "usr/" + m}, image.File{Path: "/usr/" + m, Dir: true})
	}
	return links
}
