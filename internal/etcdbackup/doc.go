// Package etcdbackup carries out HCPEtcdBackups (TechPreview): a snapshot of a hosted cluster's etcd, put into object storage by a Job.
//
// The Job runs in the operator's namespace, where the credentials of the storage are, so nobody who may look into the namespace of a control plane
// sees them. What it needs of the control plane, the client certificate of etcd and a way to its port, is opened for the time of the backup.
//
// Everything is read without a cache: backups are few, and a list that is behind would start a second Job.
package etcdbackup
