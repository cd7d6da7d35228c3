// Package gotemplate executes Go templates of people who are not trusted: those of packages and those of ObjectTemplates. It has the functions
// that both may call, bounds that hold whatever a template does (Set, Execute, Paths), and the division of time among tenants (Share).
package gotemplate
