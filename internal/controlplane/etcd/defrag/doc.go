// Package defrag keeps room in the databases of etcd: it gives space back that members do not use any more, notices members that have none
// left, and puts those right.
//
// A member that is defragmented answers nobody for up to some seconds, so that it is done only where others answer meanwhile: in
// etcds with several members, one member at a time, the leader last, and only while all are healthy. It runs in the
// control-plane-operator and not in a container beside each member: it has work every few days.
//
// A database that reaches its quota raises etcd's alarm NOSPACE: from then on etcd refuses every write, for ever, also when there is room again.
// kube-apiserver can't compact then, as it notes compactions in etcd. So history is compacted here, every member is defragmented, however many there are
// (nobody can write meanwhile in any case), and the alarm is disarmed once there is room. Where the database is full of what is in use, somebody has to delete
// objects: see Space.
package defrag
