package payload

import (
	"fmt"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"

	"hcp.internal/platform/internal/contract/nodeconfig"
)

// sysctls of a node's network. The kubelet sets those of memory and panics itself.
const sysctls = `net.ipv4.ip_forward = 1
net.ipv6.conf.all.forwarding = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
`

// installScript gets the kubelet of the release from its image. It has to be run again after a crash at any line, and does nothing
// when the machine starts again.
func installScript(in Inputs) string {
	return fmt.Sprintf(`#!/usr/bin/bash
# Prepares the kernel and gets the kubelet of the release.
set -euo pipefail

image='%[1]s'
kubelet=%[2]s
installed=%[3]s/kubelet-image

# Settings that this kernel lacks, such as those of a module that isn't loaded, are no reason to stop.
while read -r name _ value; do
  path="/proc/sys/${name//.//}"
  if [[ -w $path ]]; then echo "$value" > "$path" || true; fi
done < %[4]s

if [[ -x $kubelet && -r $installed && $(<"$installed") == "$image" ]]; then
  exit 0
fi

# The machine's image may bring it.
preloaded=%[8]s
if [[ -x $preloaded/kubelet && -r $preloaded/image && $(<"$preloaded/image") == "$image" ]]; then
  mkdir -p "$(dirname "$kubelet")"
  ln -sfn "$preloaded/kubelet" "$kubelet"
  printf '%%s' "$image" > "$installed.new"
  mv -f "$installed.new" "$installed"
  exit 0
fi

login=()
if [[ -r %[5]s ]]; then login=(--user "$(<%[5]s)"); fi
until ctr -n k8s.io images pull --hosts-dir %[6]s "${login[@]}" "$image" > /dev/null; do
  echo "pulling $image failed; trying again in 5 s" >&2
  sleep 5
done

mount=%[7]s
mkdir -p "$mount" "$(dirname "$kubelet")"
if ! ctr -n k8s.io images mount "$image" "$mount" > /dev/null 2>&1; then # what a crash left behind is in the way
  ctr -n k8s.io images unmount --rm "$mount" > /dev/null 2>&1 || true
  ctr -n k8s.io images mount "$image" "$mount" > /dev/null
fi
program="$mount/usr/bin/kube"
if [[ ! -f $program ]]; then program="$mount/usr/bin/kubelet"; fi
cp "$program" "$kubelet.new"
chmod 0755 "$kubelet.new"
mv -f "$kubelet.new" "$kubelet"
ctr -n k8s.io images unmount --rm "$mount" > /dev/null
printf '%%s' "$image" > "$installed.new"
mv -f "$installed.new" "$installed"
`, in.Images[kubeletTag], kubeletPath, "/var/lib/kubelet", sysctlPath, imageAuthPath, certsDir, "/run/kubelet-image", preloadedDir)
}

// prefetchScript gets what the pod network needs while the kubelet still waits for its certificate: nothing on the machine is Ready before it.
func prefetchScript(in Inputs) string {
	return fmt.Sprintf(`#!/usr/bin/bash
# Fetches images that the first pods need. A failure costs time only: the kubelet fetches what is missing.
login=()
if [[ -r %[1]s ]]; then login=(--user "$(<%[1]s)"); fi
for image in '%[3]s' '%[4]s'; do
  ctr -n k8s.io images pull --hosts-dir %[2]s "${login[@]}" "$image" > /dev/null &
done
wait
`, imageAuthPath, certsDir, in.Images[pauseTag], in.Images[networkTag])
}

// prefetches tells whether there is a pod network to fetch, from where the kubelet comes from, too: the script has its credentials only.
func (in Inputs) prefetches() bool {
	registry := func(tag string) string {
		host, _, _ := strings.Cut(in.Images[tag], "/")
		return host
	}
	return in.Nested && plain(in.Images[networkTag]) && registry(networkTag) == registry(kubeletTag) && registry(pauseTag) == registry(kubeletTag)
}

// units of a worker, in the subset of systemd's syntax that the init of local machines knows too.
func units(in Inputs, user *nodeconfig.Config) []ignition.Unit {
	environment := ""
	if in.Proxy != (Proxy{}) {
		environment += "EnvironmentFile=" + proxyPath + "\n"
	}
	if len(in.TrustBundle) > 0 {
		environment += "Environment=SSL_CERT_DIR=/etc/ssl/certs:/etc/pki/tls/certs:" + trustDir + "\n"
	}
	list := []ignition.Unit{
		unit("containerd.service", containerdUnit(in, environment)),
		unit("kubelet-install.service", `[Unit]
Description=Kubelet of the release
Requires=containerd.service
After=containerd.service network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
`+environment+`ExecStart=`+installPath+`

[Install]
WantedBy=multi-user.target
`),
		unit("kubelet.service", kubeletUnit(in, user, environment)),
	}
	if in.prefetches() {
		list = append(list, unit("image-prefetch.service", `[Unit]
Description=Images of the pod network
Requires=containerd.service
After=containerd.service kubelet-install.service

[Service]
Type=oneshot
`+environment+`ExecStart=-`+prefetchPath+`

[Install]
WantedBy=multi-user.target
`))
	}
	return list
}

func unit(name, contents string) ignition.Unit {
	enabled := true
	return ignition.Unit{Name: name, Enabled: &enabled, Contents: &contents}
}

func containerdUnit(in Inputs, environment string) string {
	// In a container none of these can be had.
	limits := "Delegate=yes\nKillMode=process\nLimitNOFILE=1048576\nTasksMax=infinity\nOOMScoreAdjust=-999\n"
	if in.Nested {
		limits = ""
	}
	return `[Unit]
Description=containerd
After=network-online.target

[Service]
Type=notify
` + environment + `ExecStart=/usr/bin/containerd --config ` + containerdPath + `
Restart=always
RestartSec=2
` + limits + `
[Install]
WantedBy=multi-user.target
`
}

// kubeletUnit is of type simple: the kubelet says that it is ready after somebody approved its certificate, which may take longer than
// a start may.
func kubeletUnit(in Inputs, user *nodeconfig.Config, environment string) string {
	args := []string{
		kubeletPath, "--config=" + kubeletConfPath, "--bootstrap-kubeconfig=" + bootstrapPath, "--kubeconfig=" + kubeletDir + "/kubeconfig",
	}
	if in.Nested {
		// A container has nobody to ask for its name and its place but the one who made it.
		environment = "EnvironmentFile=" + machinePath + "\n" + environment
		args = append(args, "--hostname-override=${MACHINE_NODE_NAME}", "--node-ip=${MACHINE_NODE_IP}", "--provider-id=${MACHINE_PROVIDER_ID}")
	}
	if labels := labelFlag(in.Labels); labels != "" {
		args = append(args, "--node-labels="+labels)
	}
	level := int32(2)
	if user.Kubelet != nil && user.Kubelet.LogLevel != nil {
		level = *user.Kubelet.LogLevel
	}
	args = append(args, fmt.Sprintf("--v=%d", level))
	return `[Unit]
Description=Kubernetes kubelet
Requires=containerd.service kubelet-install.service
After=containerd.service kubelet-install.service

[Service]
Type=simple
` + environment + `ExecStart=` + strings.Join(args, " ") + `
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
`
}
