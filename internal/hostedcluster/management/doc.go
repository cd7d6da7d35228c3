// Package management is what control planes have to know of the management cluster that they run on: which kinds it serves and what its nodes can
// be spread over, which networks of its own are closed to them, from which mirrors it pulls, and which users their pods may be. It reads, and makes
// nothing.
package management
