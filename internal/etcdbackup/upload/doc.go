// Package upload puts a snapshot of etcd into object storage, as the last container of a backup's Job does. It speaks to clouds, so only hcp-cloud links it.
package upload
