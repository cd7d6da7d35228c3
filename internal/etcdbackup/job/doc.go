// Package job is what the containers of a backup's Job run, each a subcommand of control-plane-operator: fetch-etcd-certs, etcd-snapshot and etcd-upload.
package job
