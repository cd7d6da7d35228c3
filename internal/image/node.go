package image

import (
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// NodePackages are the Debian packages that the image of a worker is made of, beside what they need.
var NodePackages = []string{
	"bash", "conntrack", "containerd", "containernetworking-plugins", "coreutils", "grep", "iproute2", "iptables", "kmod", "mount", "nftables",
	"procps", "runc", "sed", "util-linux",
}

// NetworkPackages are the Debian packages with the programs that kube-proxy and network plugins call.
var NetworkPackages = []string{"conntrack", "iptables", "kmod", "nftables"}

// pruned are folders and files of packages that no image needs.
var pruned = []string{
	"/etc/apparmor.d", "/etc/bash.bashrc", "/etc/containerd", "/etc/cron.daily", "/etc/default", "/etc/init.d", "/etc/pam.d", "/etc/security", "/etc/skel", "/usr/bin/containerd-shim",
	"/usr/bin/containerd-shim-runc-v1", "/usr/bin/containerd-stress", "/usr/games", "/usr/include", "/usr/lib/sysctl.d", "/usr/lib/systemd",
	"/usr/lib/udev", "/usr/lib/tmpfiles.d", "/usr/share/bash-completion", "/usr/share/bug", "/usr/share/doc", "/usr/share/doc-base",
	"/usr/share/info", "/usr/share/lintian", "/usr/share/locale", "/usr/share/man", "/usr/share/menu", "/usr/share/zsh", "/var",
	// Network plugins that nothing here configures: each is 3 to 8 MB.
	"/usr/lib/cni/dhcp", "/usr/lib/cni/host-device", "/usr/lib/cni/ipvlan", "/usr/lib/cni/macvlan", "/usr/lib/cni/ptp", "/usr/lib/cni/sbr",
	"/usr/lib/cni/static", "/usr/lib/cni/vlan", "/usr/lib/cni/vrf",
}

// Skip tells whether images leave out a file of a Debian package.
func Skip(file string) bool {
	for _, p := range pruned {
		if file == p || strings.HasPrefix(file, p+"/") {
			return true
		}
	}
	// tc loads the plugin for networks of ATM alone when it is asked for one, and Debian only recommends the library that it needs.
	return strings.Contains(file, "/gconv/") || strings.HasSuffix(file, "/tc/q_atm.so")
}

// alternatives are links that Debian's maintainer scripts would make.
func alternatives() []File {
	var out []File
	for _, n := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		out = append(out, File{Path: "/usr/sbin/" + n, Link: "xtables-nft-multi"})
	}
	return out
}

// powerScripts let a person in a machine switch it off or reboot it.
func powerScripts() []File {
	script := func(signal string) []byte { return []byte("#!/bin/bash\nexec kill -" + signal + " 1\n") }
	return []File{
		{Path: "/usr/sbin/poweroff", Mode: 0o755, Data: script("TERM")},
		{Path: "/usr/sbin/halt", Link: "poweroff"},
		{Path: "/usr/sbin/reboot", Mode: 0o755, Data: script("INT")},
	}
}

// kubeletDir is where the image of a worker has the kubelet of its release, and the reference of the image that has the same. The payload of
// the machine (package ignition/payload) looks there before it fetches that image.
const kubeletDir = "/usr/lib/kubelet"

// Kubelet is a program, and the reference of the image of KubernetesNode that holds it.
type Kubelet struct{ Binary, Image string }

// Node is the image of a worker: files are those of NodePackages, registry is the host and port of the registry with plain HTTP that
// its containerd may use. /usr/local, /opt, /root and /home are links to the machine's disk, which is at /var. As images of virtual machines
// do, it brings the kubelet, so that no machine has to fetch it first, and all machines of a host share one file.
func Node(files []File, sidecar, registry string, caBundle []byte, kubelet Kubelet) (v1.Image, error) {
	system := append([]File{}, files...)
	system = append(system, alternatives()...)
	system = append(system, powerScripts()...)
	for _, f := range Base(caBundle) {
		if !strings.HasPrefix(f.Path, "/var") && f.Path != "/root" {
			system = append(system, f)
		}
	}
	system = append(system,
		File{Path: "/usr/bin/sh", Link: "bash"},
		File{Path: "/usr/local", Link: "../var/usrlocal"},
		File{Path: "/opt", Link: "var/opt"},
		File{Path: "/root", Link: "var/roothome"},
		File{Path: "/home", Link: "var/home"},
		File{Path: "/var", Dir: true},
		File{Path: "/run", Dir: true},
		File{Path: "/proc", Dir: true},
		File{Path: "/sys", Dir: true},
		File{Path: "/dev", Dir: true},
		File{Path: "/mnt", Dir: true},
		File{Path: "/etc/os-release", Data: []byte("ID=debian\nNAME=\"HyperShift Local Machine\"\nPRETTY_NAME=\"HyperShift Local Machine (Debian packages)\"\n")},
		File{Path: path.Join("/etc/containerd/certs.d", registry, "hosts.toml"), Data: []byte(
			"server = \"http://" + registry + "\"\n\n[host.\"http://" + registry + "\"]\n  capabilities = [\"pull\", \"resolve\"]\n")},
	)
	return assemble(Config{Entrypoint: []string{"/usr/bin/machine-init"}},
		system,
		[]File{{Path: "/usr/bin/hcp-sidecar", Mode: 0o755, Source: sidecar}, {Path: "/usr/bin/machine-init", Link: "hcp-sidecar"}},
		[]File{{Path: kubeletDir + "/kubelet", Mode: 0o755, Source: kubelet.Binary}, {Path: kubeletDir + "/image", Data: []byte(kubelet.Image)}},
	)
}

// ClusterAPI is the image of Cluster API's stock manager.
func ClusterAPI(manager string, caBundle []byte) (v1.Image, error) {
	return assemble(Config{Entrypoint: []string{"/usr/bin/manager"}, User: "65534"},
		Base(caBundle), []File{{Path: "/usr/bin/manager", Mode: 0o755, Source: manager}})
}

// KubernetesNode is the image of kubelet and kube-proxy, one binary, and, from files, the programs that kube-proxy calls. Workers take the
// kubelet from it, so that kube-proxy's image is there already.
func KubernetesNode(binary string, files []File, caBundle []byte) (v1.Image, error) {
	kube := []File{
		{Path: "/usr/bin/kube", Mode: 0o755, Source: binary},
		{Path: "/usr/bin/kubelet", Link: "kube"},
		{Path: "/usr/bin/kube-proxy", Link: "kube"},
	}
	tools := append(append([]File{}, files...), alternatives()...)
	return assemble(Config{Entrypoint: []string{"/usr/bin/kube-proxy"}}, Base(caBundle), tools, kube)
}

// Flannel is the image of the pod network of hosted clusters: its program and, from files, the programs that it calls.
func Flannel(b Binaries, files []File) (v1.Image, error) {
	tools := append(append([]File{}, files...), alternatives()...)
	return assemble(Config{Entrypoint: []string{"/usr/bin/flanneld"}},
		Base(b.CABundle), tools, []File{{Path: "/usr/bin/flanneld", Mode: 0o755, Source: b.Flannel}})
}
