// Package backup has the commands that save hosted clusters, list what was saved, and make clusters of it again: create backup, create schedule, get backups,
// restore, clone.
package backup
