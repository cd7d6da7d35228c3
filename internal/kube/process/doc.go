// Package process starts our operators: it connects to an API server, takes a lease, and makes the manager that controllers run in. What all of
// them have in common is here; what differs between them is in Options.
package process
