package payload

import (
	"context"
	"fmt"
)

// OpenShift makes payloads of OpenShift releases, by running the programs that the release brings for it. It does not run them yet:
// Generate returns an *UnsupportedError, and Steps is what has to be run.
type OpenShift struct{}

// UnsupportedError says that payloads of a kind of release cannot be made.
type UnsupportedError struct{ Version string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("making machines of OpenShift release %s is not supported: use a Kubernetes release, one whose version starts with 1", e.Version)
}

// Generate implements Generator.
func (OpenShift) Generate(_ context.Context, in Inputs) ([]byte, error) {
	return nil, &InvalidError{Err: &UnsupportedError{Version: in.Version}}
}

// Step is a program of an OpenShift release.
type Step struct {
	// Tag of the image that holds the program, and its path there.
	Tag, Program string
	// Args of the program. Files are relative to the work folder of one payload.
	Args []string
	// Inputs are the files that it reads beside those that earlier steps wrote, with where they come from.
	Inputs map[string]string
}

// Steps are run one after the other, in a folder of their own for each payload, and one payload at a time: the last one listens on
// fixed ports. Images are resolved for the architecture that this program runs on, and mirrors apply to them.
//
// The release image itself is needed as well: release-manifests/image-references goes to config/image-references, and
// etc/mcc/templates of image machine-config-operator to mcc/templates. Programs for RHEL 8 lie beside those for RHEL 9 with the
// suffix .rhel8, to be chosen by os-release of this image.
func Steps() []Step {
	const cm = "ConfigMap machine-config-server"
	return []Step{
		{
			Tag: "cluster-config-api", Program: "/usr/bin/render", // cluster-config-operator before 4.15
			Args:   []string{"--asset-output-dir=config/out", "--image-manifests=config/image-references", "--rendered-manifest-dir=config/manifests", "--cluster-profile=ibm-cloud-managed", "--payload-version=VERSION"},
			Inputs: map[string]string{"config/manifests/99_feature-gate.yaml": "spec.configuration.featureGate of the HostedControlPlane"},
		},
		{
			Tag: "machine-config-operator", Program: "/usr/bin/machine-config-operator",
			Args: []string{"bootstrap", "--root-ca=config/root-ca.crt", "--kube-ca=config/signer-ca.crt", "--image-references=config/image-references",
				"--infra-config-file=config/cluster-infrastructure-02-config.yaml", "--network-config-file=config/cluster-network-02-config.yaml",
				"--proxy-config-file=config/cluster-proxy-01-config.yaml", "--dns-config-file=config/cluster-dns-02-config.yaml",
				"--additional-trust-bundle-config-file=config/user-ca-bundle-config.yaml", "--pull-secret=config/pull-secret.yaml",
				"--release-image=RELEASE", "--payload-version=VERSION", "--dest-dir=mco"},
			Inputs: map[string]string{
				"config/*.yaml":           cm + ", whose key configuration-hash must equal hc-configuration-hash of the token Secret",
				"config/root-ca.crt":      cm,
				"config/signer-ca.crt":    cm,
				"config/pull-secret.yaml": "Secret pull-secret, whose hash must equal pull-secret-hash of the token Secret",
			},
		},
		{
			Tag: "machine-config-operator", Program: "/usr/bin/machine-config-controller",
			Args:   []string{"bootstrap", "--manifest-dir=mcc", "--templates=mcc/templates", "--pull-secret=config/pull-secret.yaml", "--payload-version=VERSION", "--dest-dir=mcs"},
			Inputs: map[string]string{"mcc/custom.yaml": "config of the token Secret", "mcc/*.yaml": "mco/manifests of the step before", "mcc/99_osimagestream.yaml": "os-stream of the token Secret, if any"},
		},
		{
			Tag: "machine-config-operator", Program: "/usr/bin/machine-config-server",
			Args: []string{"bootstrap", "--server-basedir=mcs", "--bootstrap-kubeconfig=mcs/kubeconfig", "--cert=tls.crt", "--key=tls.key",
				"--secure-port=22625", "--insecure-port=22626"},
			// GET http://localhost:22626/config/master with Accept application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1
			// once a second; the first body with status 200 is the payload.
			Inputs: map[string]string{"mcs/kubeconfig": "Secret bootstrap-kubeconfig", "tls.crt, tls.key": "a certificate for one day that is made for it"},
		},
	}
}
