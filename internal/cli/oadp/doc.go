// Package oadp is `hypershift create oadp-backup`, `oadp-restore` and `oadp-schedule`: objects of Velero (velero.io/v1), which OADP, the backup
// operator of OpenShift, carries out. Nothing here touches a hosted cluster: the objects say what Velero is to do.
package oadp
