// Package render turns a package and what is known of its installation into objects: it admits the configuration, executes templates,
// evaluates conditions, and assigns what comes out to phases. It writes nothing, and depends on nothing but its input.
package render
