// Package backup drills backups with real parts and no cluster: an etcd that is written to all the time, the program that uploads, storages with faults before them
// (gofakes3 in module tools/s3server, versitygw, Azurite of npm), and the program that fills the volume of a new etcd. `make test-backup` runs it, and `make e2e-backup`
// before it does the same with a hosted cluster.
package backup
