// Package management reads what control planes have to know about their management cluster: which kinds it serves, the topology of its nodes,
// which of its networks are closed to control planes, from which mirrors it pulls, and which user IDs their pods may have. It creates
// nothing.
package management
