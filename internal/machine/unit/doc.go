// Package unit runs services that are described in a documented subset of systemd's unit files.
//
//	[Unit]     Description, After, Before, Requires, BindsTo, Wants, ConditionPathExists (also with "!")
//	[Service]  Type (simple, exec, oneshot, notify), ExecStartPre, ExecStart, ExecStartPost, ExecStopPost (with "-"), Environment,
//	           EnvironmentFile (with "-"), WorkingDirectory, Restart (no, always, on-failure), RestartSec, TimeoutStartSec,
//	           TimeoutStopSec, RemainAfterExit, KillMode (process or all)
//	[Install]  WantedBy, RequiredBy
//
// Variables are $NAME, ${NAME} and $$; specifiers %n, %N, %p and %%. Drop-ins are read in the order of their names. Targets,
// sockets and mounts that are named in dependencies count as reached. A setting that would change what runs, and which is not
// supported, is an error; others are named in the console log and have no effect.
//
// What a unit requires is started before it, unless that is ordered after it. Where units wait for each other, one of them doesn't, which the console log says.
//
// In one point this is kinder than systemd: what requires a service that failed and will be started again waits for it instead of
// failing with it, so that a registry that is away for a moment does not leave a machine dead.
package unit
