package nodepool

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/nodepool/apiproxy"
	"hcp.internal/platform/internal/nodepool/rollout"
	"hcp.internal/platform/internal/platform"
)

// What pools of OpenShift releases have and those of Kubernetes releases lack.

// Images of a payload that nodes run.
const (
	haproxyTag = "haproxy-router"
	// hypershiftTag has the program that passes connections to the API on through a user's proxy.
	hypershiftTag = "hypershift"
)

// Addresses that the API server advertises where spec.networking.apiServer says nothing.
const (
	advertiseIPv4, advertiseIPv6 = "172.20.0.1", "fd00::1"
	advertisePort                = 6443
)

// Streams of RHEL CoreOS.
const (
	streamRHEL9, streamRHEL10 = "rhel-9", "rhel-10"
)

func (p *pass) payloadRelease() bool { return p.obs.release != nil && !p.obs.release.Kubernetes }

// coreConfig is the machine configuration that isn't the user's: what the control plane has written, and for an OpenShift release the proxy to the API.
// It is an error, and waited for, while the control plane has not written all of it: machines would be made, and replaced a moment later.
func (p *pass) coreConfig() ([]nodeconfig.Source, error) {
	obs := p.obs
	if !p.payloadRelease() {
		return obs.coreConfig, nil
	}
	want := 2 // FIPS and the SSH key
	if len(obs.hc.Spec.ImageContentSources) > 0 {
		want++
	}
	if have := len(obs.coreConfig); have != want {
		return nil, fmt.Errorf("expected %d core ignition configs, found %d: the control-plane-operator writes them into namespace %s", want, have, obs.namespace)
	}
	in, err := apiProxy(obs)
	if err != nil {
		return nil, err
	}
	manifest, err := apiproxy.MachineConfig(in)
	if err != nil {
		return nil, err
	}
	made, err := generatedConfig(obs)
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(obs.coreConfig, made), nodeconfig.Source{Name: "MachineConfig " + apiproxy.Name, Data: manifest}), nil
}

// apiProxy says how nodes reach the API.
func apiProxy(obs *observed) (apiproxy.Input, error) {
	hc := obs.hc
	in := apiproxy.Input{Port: advertisePort, Host: hc.Status.ControlPlaneEndpoint.Host, HostPort: hc.Status.ControlPlaneEndpoint.Port}
	address := advertiseIPv4
	if len(hc.Spec.Networking.ServiceNetwork) > 0 && strings.Contains(string(hc.Spec.Networking.ServiceNetwork[0].CIDR), ":") {
		address = advertiseIPv6
	}
	if a := hc.Spec.Networking.APIServer; a != nil {
		if a.AdvertiseAddress != nil && *a.AdvertiseAddress != "" {
			address = *a.AdvertiseAddress
		}
		if a.Port != nil && *a.Port != 0 {
			in.Port = *a.Port
		}
	}
	var err error
	if in.Address, err = netip.ParseAddr(address); err != nil {
		return in, fmt.Errorf("spec.networking.apiServer.advertiseAddress %q of the HostedCluster is not an IP address", address)
	}
	in.Image, _ = obs.release.ImageFor(haproxyTag)
	if own := ownProxyImage(obs.pool); own != "" {
		in.Image = own
	}
	if c := hc.Spec.Configuration; c != nil && c.Proxy != nil && !reachedDirectly(in.Host, c.Proxy.NoProxy) {
		in.Proxy = c.Proxy.HTTPSProxy
		if in.Proxy == "" {
			in.Proxy = c.Proxy.HTTPProxy
		}
		in.ProxyImage, _ = obs.release.ImageFor(hypershiftTag)
	}
	return in, nil
}

// ownProxyImage is the image that users chose for the proxy to the API; empty: that of the release.
func ownProxyImage(pool *hyperv1.NodePool) string {
	return pool.Annotations[hyperv1.NodePoolHAProxyImageAnnotation]
}

// reachedDirectly tells whether a list of destinations that need no proxy has a host.
func reachedDirectly(host, noProxy string) bool {
	addr, _ := netip.ParseAddr(host) // the zero Addr of a name lies in no network
	for one := range splitComma(noProxy) {
		prefix, err := netip.ParsePrefix(one)
		switch {
		case one == "*", one == host, err == nil && prefix.Contains(addr), strings.HasSuffix(host, "."+strings.TrimPrefix(one, ".")):
			return true
		}
	}
	return false
}

// payloadGlobal are the settings of the HostedCluster that the tools of a release put into machines, besides what is in the core configurations.
type payloadGlobal struct {
	Proxy      *configv1.ProxySpec `json:"proxy,omitempty"`
	Image      *configv1.ImageSpec `json:"image,omitempty"`
	TLSProfile any                 `json:"tlsSecurityProfile,omitempty"`
}

// payloadInputs are what machines of an OpenShift release are made of. config is all of their configuration, the control plane's, too: what isn't in it does
// not reach machines.
func payloadInputs(obs *observed, config string) (rollout.Inputs, error) {
	g := payloadGlobal{}
	if c := obs.hc.Spec.Configuration; c != nil {
		g.Proxy, g.Image = c.Proxy, c.Image
		if c.APIServer != nil && c.APIServer.TLSSecurityProfile != nil && atLeast(obs.release.Version, 4, 23) /* earlier nodes don't read it */ {
			g.TLSProfile = c.APIServer.TLSSecurityProfile
		}
	}
	settings, err := canonical(g)
	if err != nil {
		return rollout.Inputs{}, err
	}
	in := rollout.Inputs{Version: obs.release.Version, Config: config, PullSecret: obs.hc.Spec.PullSecret.Name, Global: settings}
	if ref := obs.hc.Spec.AdditionalTrustBundle; ref != nil {
		in.TrustBundle = ref.Name
	}
	in.OSStream, err = osStream(obs)
	return in, err
}

// osStream is the stream of RHEL CoreOS that is asked for, empty when that is the one of the release: saying so replaces no machine.
func osStream(obs *observed) (string, error) {
	stream := obs.pool.Spec.OSImageStream.Name
	standard := streamRHEL9
	if atLeast(obs.release.Version, 5, 0) {
		standard = streamRHEL10
	}
	if runc := runtimeIsRunc(obs.userConfig); runc != "" {
		standard = streamRHEL9
		if stream == streamRHEL10 {
			return "", fmt.Errorf("%s selects runc, which %s does not have: remove it, or set spec.osImageStream.name to %s", runc, streamRHEL10, streamRHEL9)
		}
	}
	if stream == standard && (standard == streamRHEL10 || !atLeast(obs.release.Version, 5, 0)) {
		return "", nil
	}
	return stream, nil
}

// runtimeIsRunc names the source with a ContainerRuntimeConfig that selects runc; empty: there is none.
func runtimeIsRunc(sources []nodeconfig.Source) string {
	for _, s := range sources {
		for document := range strings.SplitSeq(s.Data, "\n---") {
			var parsed struct {
				Kind string
				Spec struct {
					ContainerRuntimeConfig struct{ DefaultRuntime string }
				}
			}
			if yaml.Unmarshal([]byte(document), &parsed) == nil && parsed.Kind == nodeconfig.KindContainerRuntimeConfig && parsed.Spec.ContainerRuntimeConfig.DefaultRuntime == "runc" {
				return s.Name
			}
		}
	}
	return ""
}

// atLeast compares minors, so pre-releases count as what they lead to. A version that can't be read is older than any.
func atLeast(release string, major, minor uint) bool {
	v, err := version.ParseSemantic(release)
	return err == nil && (v.Major() > major || v.Major() == major && v.Minor() >= minor)
}

// platformImage tells whether the platform can make machines of the release, and what else the platform has to say. There is nothing to tell of
// Kubernetes releases, which boot what the platform has.
func (p *pass) platformImage() bool {
	const t = hyperv1.NodePoolValidPlatformImageType
	if reporter, ok := p.obs.platform.(platform.PoolReporter); ok {
		set, absent := reporter.PoolConditions(p.obs.machineInput())
		open := true
		for _, c := range set {
			p.set(c)
			open = open && (c.Type != t || c.Status != corev1.ConditionFalse)
		}
		p.removed = append(p.removed, absent...)
		return open
	}
	if !p.payloadRelease() {
		return true
	}
	if p.spec().Platform.Type == hyperv1.LocalPlatform {
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("machines of platform Local are containers, and OpenShift release %s brings an operating system of its own: "+
			"use a HostedCluster of platform None and boot its machines with RHEL CoreOS, or a Kubernetes release", p.obs.release.Version)))
		return false
	}
	p.set(good(t))
	return true
}
