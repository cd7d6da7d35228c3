// Package etcdbackup carries out HCPEtcdBackups (TechPreview): a snapshot of a hosted cluster's etcd, put into object storage by a Job.
//
// The Job runs in the operator's namespace, where the credentials of the storage are, so nobody who may read a control-plane namespace
// can see them. What it needs from the control plane, the client certificate of etcd and access to its port, is provided only for the time of the backup.
//
// Everything is read without a cache: backups are few, and a stale list would start a second Job.
package etcdbackup
