package kit

import (
	"strings"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/settings"
)

// suites are the cipher suites that OpenShift's programs are told of, IANA's names by OpenSSL's. Others of a profile are left out, those of TLS 1.3
// among them.
var suites = map[string]string{
	"ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-RSA-AES128-GCM-SHA256":   "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384":   "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-RSA-CHACHA20-POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
	"ECDHE-RSA-AES128-SHA":          "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
	"ECDHE-ECDSA-AES256-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
	"ECDHE-RSA-AES256-SHA":          "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
}

// TLS is a TLS security profile in the words of OpenShift's programs.
type TLS struct {
	// MinVersion is VersionTLS10 to VersionTLS13.
	MinVersion string
	// CipherSuites are IANA's names in the order of the profile; none for Modern.
	CipherSuites []string
}

// TLSOf is spec.configuration.apiServer.tlsSecurityProfile; Intermediate when there is none.
func TLSOf(hcp *hyperv1.HostedControlPlane) TLS {
	profile := settings.APIServer(hcp).TLSSecurityProfile
	minimum, names := configv1.VersionTLS12, settings.IntermediateCiphers()
	switch {
	case profile == nil:
	case profile.Type == configv1.TLSProfileOldType:
		minimum, names = configv1.VersionTLS10, settings.OldCiphers()
	case profile.Type == configv1.TLSProfileModernType:
		minimum, names = configv1.VersionTLS13, nil
	case profile.Type == configv1.TLSProfileCustomType && profile.Custom != nil:
		minimum, names = profile.Custom.MinTLSVersion, profile.Custom.Ciphers
	}
	t := TLS{MinVersion: string(minimum)}
	for _, name := range names {
		if suite, ok := suites[name]; ok {
			t.CipherSuites = append(t.CipherSuites, suite)
		}
	}
	return t
}

// Args are the flags --tls-min-version and, unless there is nothing to choose, --tls-cipher-suites.
func (t TLS) Args() []string {
	args := []string{"--tls-min-version=" + t.MinVersion}
	if len(t.CipherSuites) > 0 {
		args = append(args, "--tls-cipher-suites="+strings.Join(t.CipherSuites, ","))
	}
	return args
}

// ServingInfo sets minTLSVersion and cipherSuites of a servingInfo in a configuration file.
func (t TLS) ServingInfo(servingInfo map[string]any) {
	servingInfo["minTLSVersion"] = t.MinVersion
	delete(servingInfo, "cipherSuites")
	if len(t.CipherSuites) > 0 {
		servingInfo["cipherSuites"] = List(t.CipherSuites)
	}
}
