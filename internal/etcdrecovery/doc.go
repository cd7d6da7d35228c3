// Package etcdrecovery replaces the one member of an etcd that can't start any more: it deletes the member's pod and volume, and the new pod
// joins with the data of the others (see package etcdinit).
//
//	hypershift-operator    sees a member crash again and again, starts Job etcd-recovery, reports EtcdRecoveryActive
//	recover-etcd run       the Job: observe → Decide → remove member, delete volume and pod → wait until all are healthy
//
// Data is deleted only when a quorum of the other members has just said who is in the cluster, each of them takes part in it, and
// exactly one is missing. If two are missing, the volume of the one that crashes may be the last copy of something: a person has to decide.
package etcdrecovery
