// Command schemadiff compares generated CustomResourceDefinitions with tables of field facts, line by line.
//
//	schemadiff -crds FOLDER -tables FOLDER -reasons FILE [FOLDER...]
//
// FOLDER/default holds the default set, FOLDER/techpreview what differs in the set with previews; FOLDER/hosted and the folders
// named last belong to both.
//
// A table holds kinds: a line "# PLURAL.GROUP  kind=K scope=S short=a,b categories=c", a line "## VERSION served=B storage=B
// subresources=x,y", lines "# column<TAB>NAME<TAB>TYPE<TAB>PATH<TAB>priority=N", and a line
// "PATH<TAB>TYPE<TAB>required or -<TAB>FACTS" per field. In a path "[]" marks the items of a list. Facts are what a schema says
// besides: enum, default, bounds, pattern, list type; "immutable" for the rule self == oldSelf; celRules=N for N more
// rules; what follows "items:" is about the items of a list or the values of a map. A table NAME-gated.tsv holds what previews add
// to NAME.tsv, or change in it.
//
// Every difference is printed. One that is meant has a line with a reason in the file of reasons: set, kind, path, fact and
// reason, separated by tabs; a path may end in "*". schemadiff fails when a difference has no reason, or a reason no difference.
package main
