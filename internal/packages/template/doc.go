// Package template makes objects from ObjectTemplates: values of other objects go through a Go template, and what comes out is kept as
// it is. It also has the functions and limits that templates of packages share.
package template
