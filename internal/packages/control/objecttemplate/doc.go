// Package objecttemplate is the controller of ObjectTemplates and ClusterObjectTemplates: values of other objects go through a Go template, and
// the object that comes out is kept as it is.
package objecttemplate
