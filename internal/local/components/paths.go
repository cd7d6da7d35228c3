package components

import "path/filepath"

// Paths names everything in a state folder.
type Paths struct {
	State string // absolute
}

func (p Paths) join(elem ...string) string {
	return filepath.Join(append([]string{p.State}, elem...)...)
}

func (p Paths) Bin(name string) string     { return p.join("bin", name) }
func (p Paths) Logs() string               { return p.join("logs") }
func (p Paths) PodLogs() string            { return p.join("logs", "pods") }
func (p Paths) SupervisorLog() string      { return p.join("logs", "supervisor.log") }
func (p Paths) Audit() string              { return p.join("logs", "audit.log") }
func (p Paths) Status() string             { return p.join("status.json") }
func (p Paths) Config() string             { return p.join("config.json") }
func (p Paths) PKI() string                { return p.join("pki") }
func (p Paths) Conf(name string) string    { return p.join("conf", name) }
func (p Paths) Kubeconfig() string         { return p.join("kubeconfig") }
func (p Paths) DemoKubeconfig() string     { return p.join("demo.kubeconfig") }
func (p Paths) Registry() string           { return p.join("registry") }
func (p Paths) Volumes() string            { return p.join("volumes") }
func (p Paths) Etcd() string               { return p.join("etcd") }
func (p Paths) Containerd() string         { return p.join("containerd") }
func (p Paths) ContainerdSocket() string   { return p.join("containerd", "sock") }
func (p Paths) ContainerdRegistry() string { return p.join("conf", "registry.d") }
func (p Paths) CNIConf() string            { return p.join("conf", "cni") }
func (p Paths) CNIData() string            { return p.join("cni") }
func (p Paths) Kubelet() string            { return p.join("kubelet") }
func (p Paths) Shown(tour string) string   { return p.join("shown", tour) }
func (p Paths) HostState() string          { return p.join("host.json") }

// ContainerdBrought is the file that says that this machine's containerd is one that "up" installs, whose service is not off yet.
func (p Paths) ContainerdBrought() string { return p.join("containerd-brought") }

// Marker is the file that says that a folder is local mode's own. It comes first and goes last.
func (p Paths) Marker() string { return p.join(".hypershift-local") }

// LongestSocket is the longest path of a unix socket in a state folder, relative to it. The kernel allows 107 bytes in all.
const LongestSocket = "/kubelet/device-plugins/kubelet.sock.0000000000"
