package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"hcp.internal/platform/internal/version"
)

// about answers a question about the binary itself, and says whether there was one. Called by a role's name, the role answers.
func about(out io.Writer, roles []role, argv []string) bool {
	if len(argv) != 2 || slices.ContainsFunc(roles, func(r role) bool { return r.name == filepath.Base(argv[0]) }) {
		return false
	}
	switch argv[1] {
	case "help", "--help", "-h":
		usage(out, roles)
	case "version", "--version":
		fmt.Fprintf(out, "hcp-operators %s\n", version.This())
	default:
		return false
	}
	return true
}

// usage says what the binary is. A role's own --help says the rest.
func usage(out io.Writer, roles []role) {
	fmt.Fprint(out, `hcp-operators is every operator of hosted control planes and of packages, in one binary. The name by which it is called
says which one it is, else the first argument.

Usage:
  hcp-operators ROLE [COMMAND] [flags]
  ROLE [COMMAND] [flags]                  called by a link of the role's name

Roles:
`)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range roles {
		fmt.Fprintf(w, "  %s\t%s\n", r.name, r.short)
	}
	_ = w.Flush() // to where the rest went
	fmt.Fprint(out, `
Other commands:
  help     Print this
  version  Print which build this is

Examples:
  hcp-operators hypershift-operator run --namespace hypershift
  hcp-operators control-plane-operator --help
`)
}
