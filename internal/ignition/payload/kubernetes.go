package payload

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_2"
	ignition "github.com/coreos/ignition/v2/config/v3_2/types"

	"hcp.internal/platform/internal/contract/nodeconfig"
)

// Kubernetes makes payloads of Kubernetes releases.
type Kubernetes struct{}

// Paths on a machine.
const (
	kubernetesDir   = "/etc/kubernetes"
	kubeletConfPath = kubernetesDir + "/kubelet.conf"
	bootstrapPath   = kubernetesDir + "/kubeconfig"
	kubeletCAPath   = kubernetesDir + "/kubelet-ca.crt"
	manifestsDir    = kubernetesDir + "/manifests"
	volumePluginDir = kubernetesDir + "/kubelet-plugins/volume/exec"
	proxyPath       = kubernetesDir + "/proxy.env"
	trustDir        = kubernetesDir + "/trust"
	trustPath       = trustDir + "/additional-ca.pem"
	imageAuthPath   = kubernetesDir + "/kubelet-image.auth"
	sysctlPath      = kubernetesDir + "/sysctl.conf"
	kubeletDir      = "/var/lib/kubelet"
	pullSecretPath  = kubeletDir + "/config.json"
	containerdPath  = "/etc/containerd/config.toml"
	certsDir        = "/etc/containerd/certs.d"
	cniConfDir      = "/etc/cni/net.d"
	cniBinDir       = "/opt/cni/bin"
	installPath     = "/usr/local/libexec/kubernetes/kubelet-install"
	prefetchPath    = "/usr/local/libexec/kubernetes/image-prefetch"
	kubeletPath     = "/usr/local/bin/kubelet"
	// preloadedDir holds the kubelet that the machine's image brings, and the reference of the image that it is from.
	preloadedDir     = "/usr/lib/kubelet"
	machinePath      = "/run/metadata/machine"
	containerdSocket = "/run/containerd/containerd.sock"
)

const (
	modeSecret  = 0o600
	modeFile    = 0o644
	modeProgram = 0o755
	modeDir     = 0o755
)

// maxPayload of bytes. A payload in a Secret has to fit into 1 MiB, compressed; MachineConfigs compress well.
const maxPayload = 8 << 20

// Generate implements Generator.
func (Kubernetes) Generate(_ context.Context, in Inputs) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	user, err := nodeconfig.Parse(nodeconfig.Target{Kubernetes: true}, nodeconfig.Source{Data: in.Config})
	if err != nil {
		return nil, &InvalidError{Err: err}
	}
	files, err := filesFor(in, user)
	if err != nil {
		return nil, err
	}
	cfg := user.Ignition
	cfg.Ignition.Version = nodeconfig.PayloadVersion
	cfg.Storage.Files = append(cfg.Storage.Files, files...)
	for _, dir := range []string{manifestsDir, volumePluginDir, trustDir, certsDir, cniConfDir, kubeletDir} {
		cfg.Storage.Directories = append(cfg.Storage.Directories, ignition.Directory{
			Node: ignition.Node{Path: dir}, DirectoryEmbedded1: ignition.DirectoryEmbedded1{Mode: util.IntToPtr(modeDir)}})
	}
	cfg.Systemd.Units = mergeUnits(cfg.Systemd.Units, units(in, user))
	slices.SortFunc(cfg.Storage.Files, func(a, b ignition.File) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(cfg.Storage.Directories, func(a, b ignition.Directory) int { return cmp.Compare(a.Path, b.Path) })
	return encode(cfg)
}

// encode checks the payload as a machine will.
func encode(cfg ignition.Config) ([]byte, error) {
	data, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("encoding the payload: %w", err)
	}
	if len(data) > maxPayload {
		return nil, invalid("the payload has %d bytes, more than %d: take files out of the MachineConfigs", len(data), maxPayload)
	}
	if err := Check(data); err != nil {
		return nil, err
	}
	return data, nil
}

// Check says why a payload is not one that a machine would take.
func Check(data []byte) error {
	if _, report, err := v3_2.Parse(data); err != nil || report.IsFatal() {
		return errors.Join(err, errors.New("the payload is not a valid Ignition configuration"))
	}
	return nil
}

// mergeUnits adds the user's drop-ins to our units, and ours to the list.
func mergeUnits(user, ours []ignition.Unit) []ignition.Unit {
	all := slices.Clone(ours)
	for _, u := range user {
		if n := slices.IndexFunc(all, func(o ignition.Unit) bool { return o.Name == u.Name }); n >= 0 {
			all[n].Dropins = append(all[n].Dropins, u.Dropins...)
			continue
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b ignition.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// file of a payload.
func file(path string, mode int, data []byte) ignition.File {
	source := "data:;base64," + base64.StdEncoding.EncodeToString(data)
	return ignition.File{
		Node:          ignition.Node{Path: path, Overwrite: util.BoolToPtr(true)},
		FileEmbedded1: ignition.FileEmbedded1{Mode: &mode, Contents: ignition.Resource{Source: &source}},
	}
}

func filesFor(in Inputs, user *nodeconfig.Config) ([]ignition.File, error) {
	kubelet, err := kubeletConfig(in, user)
	if err != nil {
		return nil, err
	}
	files := []ignition.File{
		file(kubeletConfPath, modeFile, kubelet),
		file(bootstrapPath, modeSecret, in.BootstrapKubeconfig),
		file(kubeletCAPath, modeFile, in.KubeletCA),
		file(sysctlPath, modeFile, []byte(sysctls)),
		file(containerdPath, modeFile, []byte(containerdConfig(in, user))),
		file(installPath, modeProgram, []byte(installScript(in))),
	}
	if in.prefetches() {
		files = append(files, file(prefetchPath, modeProgram, []byte(prefetchScript(in))))
	}
	for _, m := range user.Mirrors {
		files = append(files, file(certsDir+"/"+m.Source+"/hosts.toml", modeFile, []byte(hostsFile(m, in.Nested))))
	}
	if len(in.PullSecret) > 0 {
		files = append(files, file(pullSecretPath, modeSecret, in.PullSecret))
		auth, err := imageAuth(in.PullSecret, in.Images[kubeletTag])
		if err != nil {
			return nil, err
		}
		if auth != "" {
			files = append(files, file(imageAuthPath, modeSecret, []byte(auth)))
		}
	}
	if len(in.TrustBundle) > 0 {
		files = append(files, file(trustPath, modeFile, in.TrustBundle))
	}
	if in.Proxy != (Proxy{}) {
		files = append(files, file(proxyPath, modeSecret, []byte(proxyEnvironment(in.Proxy))))
	}
	return files, nil
}

func proxyEnvironment(p Proxy) string {
	text := ""
	for _, v := range [][2]string{{"HTTP_PROXY", p.HTTP}, {"HTTPS_PROXY", p.HTTPS}, {"NO_PROXY", p.No}} {
		if v[1] != "" {
			text += v[0] + "=" + v[1] + "\n"
		}
	}
	return text
}
