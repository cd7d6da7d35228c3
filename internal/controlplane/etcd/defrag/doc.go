// Package defrag gives disk space back that etcd's members do not use any more.
//
// A member that is defragmented answers nobody for up to some seconds, so that it is done only where others answer meanwhile: in
// etcds with several members, one member at a time, the leader last, and only while all are healthy. It runs in the
// control-plane-operator and not in a container beside each member: it has work every few days.
package defrag
