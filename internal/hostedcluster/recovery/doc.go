// Package recovery replaces members of a hosted cluster's etcd that fail: it observes the etcds, plans the Jobs that do it and what is cleared
// away after them, and reports condition EtcdRecoveryActive. What a Job does is in package etcdrecovery.
package recovery
