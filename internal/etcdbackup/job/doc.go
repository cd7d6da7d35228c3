// Package job is what the first containers of a backup's Job run, each a subcommand of control-plane-operator: fetch-etcd-certs and etcd-snapshot.
package job
