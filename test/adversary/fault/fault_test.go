package fault

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/supervisor"
	"hcp.internal/platform/test/adversary/world"
)

// victim is a process that does nothing until the end of the test.
func victim(t *testing.T, attributes *syscall.SysProcAttr) world.Process {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = attributes
	if err := cmd.Start(); err != nil {
		t.Skipf("no process: %v", err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	started, err := supervisor.StartTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return world.Process{PID: cmd.Process.Pid, Started: started, Program: "sleep"}
}

// state is the letter that /proc has for what a process does.
func state(g Gomega, p world.Process) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	g.Expect(err).NotTo(HaveOccurred())
	return strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[0]
}

func TestStop(t *testing.T) {
	g, p, file := NewWithT(t), victim(t, nil), filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(file)
	g.Expect(err).NotTo(HaveOccurred())
	f := &Faults{Journal: j}
	stopped, running := func(g Gomega) { g.Expect(state(g, p)).To(Equal("T")) }, func(g Gomega) { g.Expect(state(g, p)).NotTo(Equal("T")) }

	undo, err := f.stop([]world.Process{p})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(stopped).Should(Succeed())
	g.Expect(undo()).To(Succeed())
	g.Eventually(running).Should(Succeed(), "When the fault ends it should go on")
	g.Expect(undo()).To(Succeed(), "When it is undone twice nothing should happen")

	_, err = f.stop([]world.Process{p})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(stopped).Should(Succeed())
	// The adversary is killed here, in the middle of a line.
	g.Expect(os.WriteFile(file, append(read(g, file), []byte(`{"id":7,"ha`)...), 0o600)).To(Succeed())
	next, err := OpenJournal(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.UndoAll()).To(Equal(1))
	g.Eventually(running).Should(Succeed(), "When an adversary was killed the next one should undo what it did")
	g.Expect(next.Close()).To(Succeed())
	last, err := OpenJournal(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(last.UndoAll()).To(BeZero(), "When all is undone nothing should be left to do")
}

func read(g Gomega, file string) []byte {
	raw, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	return raw
}

func TestKill(t *testing.T) {
	g, p := NewWithT(t), victim(t, nil)
	other := p
	other.Started++
	g.Expect(kill([]world.Process{other})).To(Succeed())
	g.Expect(p.Alive()).To(BeTrue(), "When a number belongs to another process now it should be left alone")
	g.Expect(kill([]world.Process{p})).To(Succeed())
	g.Eventually(p.Alive).Should(BeFalse())
}

func TestCut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("there is no nft")
	}
	g, p, file := NewWithT(t), victim(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}), filepath.Join(t.TempDir(), "journal")
	j, err := OpenJournal(file)
	g.Expect(err).NotTo(HaveOccurred())
	f := &Faults{Journal: j}
	tables := func() string {
		out, err := exec.Command("nsenter", "--net=/proc/"+fmt.Sprint(p.PID)+"/ns/net", "nft", "list", "tables").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}
	_, err = f.cut(os.Getpid(), all)
	g.Expect(err).To(MatchError(ContainSubstring("the machine's own network")), "When it is no pod's network it should be left alone")
	for _, rules := range []string{all, noRegistry, slowRegistry, fmt.Sprintf(loss, 20, 20), fmt.Sprintf(strangers, "192.0.2.1, 192.0.2.2")} {
		undo, err := f.cut(p.PID, rules)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tables()).To(ContainSubstring(table))
		g.Expect(undo()).To(Succeed())
		g.Expect(tables()).To(BeEmpty(), "When the fault ends nothing of it should be left")
	}
	_, err = f.cut(p.PID, all)
	g.Expect(err).NotTo(HaveOccurred())
	next, err := OpenJournal(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.UndoAll()).To(Equal(1))
	g.Expect(tables()).To(BeEmpty(), "When an adversary was killed the next one should undo what it did")
	g.Expect(reconnect(1)).To(Succeed(), "When nobody lives in a network any more there should be nothing to do")
}
