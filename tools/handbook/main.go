// Command handbook writes docs/reference/reasons.md, which has every reason of a condition, and its test fails for a reason or an
// event in the code that the handbook doesn't explain.
//
//	go run ./handbook [-root ..]
//
// What else is in the code has guards of its own: metrics and their page (internal/monitoring), alerts and docs/alerts.md (alerts), flags and
// annotations and docs/reference/support.md (internal/support), types of conditions and docs/conditions.md (tools/apidocs).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// page is where reasons are explained, from the root.
const page = "docs/reference/reasons.md"

func main() {
	root := flag.String("root", "..", "folder of the repository")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run(root string) error {
	reasons, err := allReasons(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, page), Page(reasons), 0o644)
}

// allReasons are those of the APIs and then those of the operators alone; what docs/events.md explains is an event.
func allReasons(root string) ([]Reason, error) {
	reasons, err := Reasons(filepath.Join(root, "api"))
	if err != nil {
		return nil, err
	}
	known, err := explainedEvents(root)
	if err != nil {
		return nil, err
	}
	for _, r := range reasons {
		known[r.Value] = true
	}
	more, err := OwnReasons(filepath.Join(root, "internal"), known)
	return append(reasons, more...), err
}
