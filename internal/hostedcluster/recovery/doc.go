// Package recovery replaces failing members of a hosted cluster's etcd: it observes the etcds, plans the recovery Jobs and the cleanup after
// them, and reports condition EtcdRecoveryActive. Package etcdrecovery implements the Job.
package recovery
