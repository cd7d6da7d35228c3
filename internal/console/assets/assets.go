// Package assets holds the program for the browser as tools/consolebundle built it from internal/console/web. It is committed, so that nobody needs more
// than Go to build the console; a test in tools builds it again and compares each byte.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed dist
var dist embed.FS

// Files are those that a browser asks for: index.html, app.js, app.css, icon.svg.
var Files = func() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // of what is embedded
	}
	return sub
}()
