// Command apidocs writes a reference of an API module in Markdown.
//
//	apidocs API-FOLDER OUTPUT
//
// API-FOLDER is a Go module whose packages lie at GROUP/VERSION. A package with a constant or variable GroupVersion belongs to
// that API group; others hold types that these use. Every kind gets a section, then every type that it reaches; what is said
// there is the doc comment, and what the markers below it demand: whether a field is required, defaults, bounds, enums and the
// messages of rules.
package main
