package kubeconfig

import (
	"io"
	"io/fs"
	"os"
)

// readByOthers says whether w is a file that others than its owner can read, and its permissions.
func readByOthers(w io.Writer) (fs.FileMode, bool) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&0o044 != 0
}
