// Package backup drills backups with real parts and no cluster: an etcd that is written to all the time, the program that uploads, a server of S3 with faults (module
// tools/s3server), and the program that fills the volume of a new etcd. `make e2e-backup` runs it before it does the same with a hosted cluster.
package backup
