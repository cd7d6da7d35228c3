package companion

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill a program whose parent was killed: nobody would hold the lease that it works under.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
