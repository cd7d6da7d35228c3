// Package violation is how a package is said to be wrong: what, where, and how to put it right.
package violation

import (
	"fmt"
	"strings"
)

// Reason is a kind of mistake. The texts are read by people and tools, and don't change.
type Reason string

// Reasons.
const (
	Empty                   Reason = "Package image contains no files. Might be corrupted."
	ManifestNotFound        Reason = "PackageManifest not found"
	UnknownGVK              Reason = "unknown GVK"
	ManifestInvalid         Reason = "PackageManifest invalid"
	ManifestDuplicated      Reason = "PackageManifest present multiple times"
	LockInvalid             Reason = "PackageManifestLock invalid"
	LockDuplicated          Reason = "PackageManifestLock present multiple times"
	InvalidYAML             Reason = "Invalid YAML"
	MissingPhase            Reason = "Missing package-operator.run/phase Annotation"
	PhaseNotFound           Reason = "Phase name not found in manifest"
	MissingGVK              Reason = "GroupVersionKind not set"
	DuplicateObject         Reason = "Duplicate Object"
	LabelsInvalid           Reason = "Labels invalid"
	UnsupportedScope        Reason = "Package unsupported scope"
	FixtureMismatch         Reason = "File mismatch against fixture"
	ComponentsNotEnabled    Reason = "Components not enabled"
	ComponentNotFound       Reason = "Component not found"
	InvalidComponentPath    Reason = "Invalid component path"
	Unknown                 Reason = "Unknown reason"
	NestedComponents        Reason = "Nesting multi-component packages not allowed"
	InvalidFileInComponents Reason = "The components directory may only contain folders and dot files"
	Kubeconform             Reason = "Kubeconform rejected schema"
	LockMissing             Reason = "Missing image in manifest.lock.yaml, but using PackageManifest.spec.images. Try running: kubectl package update"
	ImageNotInLock          Reason = "Image specified in manifest but missing from lockfile. Try running: kubectl package update"
	ImageDiffersFromLock    Reason = "Image specified in manifest does not match with lockfile. Try running: kubectl package update"
	InvalidCondition        Reason = "The CEL expression in package-operator.run/condition annotation is invalid."
	InvalidAnnotation       Reason = "Annotation invalid"
	InvalidObject           Reason = "Object not allowed"
	InvalidFile             Reason = "File not allowed"
	TooLarge                Reason = "Package too large"
)

// Error is a mistake in a package.
type Error struct {
	Reason Reason
	// Path of the file, in the package.
	Path string
	// Index of the document in the file, nil when there is one or it doesn't matter.
	Index *int
	// Component whose package it is.
	Component string
	// Details for people.
	Details string
	// Subject is an extract that shows the mistake; never anything secret.
	Subject string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Reason))
	if e.Path != "" {
		b.WriteString(" in " + e.Path)
		if e.Index != nil {
			fmt.Fprintf(&b, " idx %d", *e.Index)
		}
	}
	if e.Component != "" {
		b.WriteString(" [" + e.Component + "]")
	}
	if e.Details != "" {
		b.WriteString(": " + e.Details)
	}
	if e.Subject != "" {
		b.WriteString("\n" + e.Subject)
	}
	return b.String()
}
