package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Inputs are everything that a payload depends on.
type Inputs struct {
	// Version of the release, for example "1.36.3".
	Version string
	// Images of the release by tag. Only those that a machine itself needs count.
	Images map[string]string
	// Config is the configuration of the NodePool: YAML documents as package config reads them.
	Config string

	// Nested is true for machines that are containers: they share a kernel, its control groups and its limits with others.
	Nested bool
	// ClusterDNS is the address of the DNS Service of the hosted cluster.
	ClusterDNS string
	// ClusterDomain is the domain of Services, usually "cluster.local".
	ClusterDomain string

	// BootstrapKubeconfig is with which a kubelet asks for its certificate.
	BootstrapKubeconfig []byte
	// KubeletCA are the authorities, in PEM, of those who may call the kubelet.
	KubeletCA []byte
	// PullSecret is a Docker configuration; optional.
	PullSecret []byte
	// TrustBundle are more authorities, in PEM, for registries and proxies; optional.
	TrustBundle []byte
	// Proxy is by what the outside is reached; optional.
	Proxy Proxy

	// Labels and Taints that the node registers with.
	Labels map[string]string
	Taints []corev1.Taint

	// OpenShift is what payloads of OpenShift releases are made of besides; nil for Kubernetes releases.
	OpenShift *OpenShift
}

// OpenShift are inputs of the programs of an OpenShift release.
type OpenShift struct {
	// Release is the pull spec that machines know the release by, and Digest what it resolved to.
	Release, Digest string
	// Cluster is the data of ConfigMap machine-config-server: files that describe the hosted cluster, by name.
	Cluster map[string]string
	// FeatureGate is the FeatureGate as the user wants it, in YAML.
	FeatureGate []byte
	// CloudConfig is the ConfigMap with the configuration of the cloud, in YAML; empty where the platform has none.
	CloudConfig []byte
	// OSStream is the stream of RHEL CoreOS that machines boot; empty: that of the release.
	OSStream string
}

// Proxy holds the values of the environment variables of the same names.
type Proxy struct {
	HTTP, HTTPS, No string
}

// Images that the machine of a Kubernetes release needs.
const (
	kubeletTag = "kubelet"
	pauseTag   = "pause"
	networkTag = "kube-flannel" // not every release has it
)

// Key identifies the inputs: equal keys mean equal payloads. It reveals nothing of them.
func (in Inputs) Key() string {
	in.Images = map[string]string{kubeletTag: in.Images[kubeletTag], pauseTag: in.Images[pauseTag], networkTag: in.Images[networkTag]}
	if in.OpenShift != nil {
		// The digest of the release stands for its images, and what nodes register with is put on them by the hosted-cluster-config-operator.
		in.Images, in.Labels, in.Taints = nil, nil, nil
	}
	data, err := json.Marshal(in) // maps come out sorted
	if err != nil {
		panic(fmt.Sprintf("encoding payload inputs: %v", err)) // strings, bytes and maps of them
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Generator makes payloads. Implementations may be used concurrently.
type Generator interface {
	// Generate returns the payload as JSON. An error that a user can do something about is an *InvalidError.
	Generate(ctx context.Context, in Inputs) ([]byte, error)
}

// InvalidError says what is wrong with the inputs. Its text is for users and holds nothing secret.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error {
	return &InvalidError{Err: fmt.Errorf(format, args...)}
}

// check finds what is missing or would break out of the file that it is written to.
func (in Inputs) check() error {
	for _, tag := range []string{kubeletTag, pauseTag} {
		if in.Images[tag] == "" {
			return invalid("release %s has no image %s, so no machine can be made of it", in.Version, tag)
		}
		if !plain(in.Images[tag]) {
			return invalid("image %s of release %s is not a pull specification", tag, in.Version)
		}
	}
	switch {
	case len(in.BootstrapKubeconfig) == 0:
		return errors.New("the bootstrap kubeconfig is empty")
	case len(in.KubeletCA) == 0:
		return errors.New("the authorities of the kubelet's clients are empty")
	case !plain(in.ClusterDNS) || !plain(in.ClusterDomain):
		return errors.New("the cluster's DNS address or domain is missing")
	}
	for name, value := range map[string]string{"httpProxy": in.Proxy.HTTP, "httpsProxy": in.Proxy.HTTPS, "noProxy": in.Proxy.No} {
		if value != "" && !plain(value) {
			return invalid("configuration.proxy.%s holds spaces, quotes or control characters", name)
		}
	}
	return nil
}

// plain reports whether s may stand in a unit, a script or an environment file as it is.
func plain(s string) bool {
	for _, c := range s {
		if c <= ' ' || c > '~' || strings.ContainsRune("\"'`\\$<>|;&(){}", c) {
			return false
		}
	}
	return s != ""
}
