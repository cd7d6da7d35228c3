// Command schemacompat fails when CustomResourceDefinitions no longer take what they took before.
//
//	schemacompat [-write] -baseline FILE [-allowed FILE] SET=FOLDER...
//
// The baseline describes the definitions of the previous release: a line "## SET<TAB>NAME" per definition, and a line
// "PATH<TAB>FACT<TAB>VALUE" per fact. A difference fails when a kind, a field, a default, a short name, a subresource or a column is gone, when a type or a list's type
// changed, or when something got stricter: a field is required now, an enum lost values, a bound is tighter, a pattern or a
// rule is new. A rule that looks at oldSelf is not stricter, as it leaves stored objects alone until what it is about
// changes. Anything else that is meant has a line in the file of what is allowed: set, kind, path, fact and the reason why
// stored objects stay usable. With -write the baseline is written; do that when a release is made.
package main
