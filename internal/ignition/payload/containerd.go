package payload

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/oci/credentials"
)

// containerdConfig is in the format of version 2, which containerd 1.3 to 2.x read.
func containerdConfig(in Inputs, user *nodeconfig.Config) string {
	level := "info"
	if user.Runtime != nil && user.Runtime.LogLevel != "" {
		level = user.Runtime.LogLevel
	}
	return fmt.Sprintf(`version = 2

[debug]
  level = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # Where nobody may lower an oom_score_adj, every sandbox would fail without this.
  restrict_oom_score_adj = %t

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = %t

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = %q
`, level, in.Images[pauseTag], in.Nested, cniBinDir, cniConfDir, !in.Nested, certsDir)
}

// hostsFile tells containerd where else images of a registry are. Mirrors are asked for digests only, as the kinds say that they
// come from: a mirror could give another image for a tag.
func hostsFile(m nodeconfig.Mirror, nested bool) string {
	var b strings.Builder
	server := registryURL(m.Source, nested)
	if m.Never && len(m.Mirrors) > 0 {
		server = registryURL(m.Mirrors[0], nested)
	}
	fmt.Fprintf(&b, "server = %q\n", server)
	for _, mirror := range m.Mirrors {
		registry, path, _ := strings.Cut(mirror, "/")
		url := registryURL(registry, nested)
		if path != "" {
			url += "/v2/" + path
		}
		fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\"]\n", url)
		if path != "" {
			b.WriteString("  override_path = true\n")
		}
	}
	return b.String()
}

// registryURL is https, except for registries of a local cluster, which have addresses of private networks and no certificates.
func registryURL(registry string, nested bool) string {
	host, _, _ := strings.Cut(registry, ":")
	if addr, err := netip.ParseAddr(host); err == nil && nested && (addr.IsPrivate() || addr.IsLoopback()) {
		return "http://" + registry
	}
	if registry == "docker.io" {
		return "https://registry-1.docker.io"
	}
	return "https://" + registry
}

// imageAuth finds "user:password" for an image in a Docker configuration; "" when it has none. It is the first that the kubelet would try of those with both: a
// machine hands nothing else to the program that pulls its kubelet.
func imageAuth(pullSecret []byte, image string) (string, error) {
	keys, err := credentials.Parse(pullSecret)
	if err != nil {
		return "", invalid("%w: %s", err, credentials.Remedy)
	}
	ref, err := name.ParseReference(image, name.WeakValidation)
	if err != nil {
		return "", invalid("image %s is not a pull specification", image)
	}
	for _, a := range keys.For(ref.Context().Name()) {
		auth, err := a.Authorization()
		if err != nil {
			return "", fmt.Errorf("reading the pull secret's entries for %s: %w", ref.Context().Name(), err)
		}
		if auth.Username != "" && auth.Password != "" {
			return auth.Username + ":" + auth.Password, nil
		}
	}
	return "", nil
}
