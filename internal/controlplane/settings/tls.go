package settings

import (
	"slices"
	"strings"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// TLS is a TLS security profile in the words of Go: names as crypto/tls has them.
type TLS struct {
	// MinVersion is VersionTLS10 to VersionTLS13.
	MinVersion string
	// CipherSuites are those for TLS up to 1.2, by their IANA names; TLS 1.3 has no choice. Empty means Go's own.
	CipherSuites []string
}

// intermediate are the suites of Mozilla's intermediate profile that Go has.
var intermediate = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
}

// old adds what only old clients need.
var old = append(append([]string{}, intermediate...),
	"ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
	"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA",
	"AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA256", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA",
)

// IntermediateCiphers and OldCiphers are the suites of the profiles of these names, as OpenSSL calls them.
func IntermediateCiphers() []string { return slices.Clone(intermediate) }

// OldCiphers is described at IntermediateCiphers.
func OldCiphers() []string { return slices.Clone(old) }

// iana maps the names that OpenSSL gives to cipher suites. What is not here, Go does not have.
var iana = map[string]string{
	"ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-RSA-AES128-GCM-SHA256":   "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384":   "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-RSA-CHACHA20-POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-SHA256":     "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-RSA-AES128-SHA256":       "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-ECDSA-AES128-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
	"ECDHE-RSA-AES128-SHA":          "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
	"ECDHE-ECDSA-AES256-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
	"ECDHE-RSA-AES256-SHA":          "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
	"AES128-GCM-SHA256":             "TLS_RSA_WITH_AES_128_GCM_SHA256",
	"AES256-GCM-SHA384":             "TLS_RSA_WITH_AES_256_GCM_SHA384",
	"AES128-SHA256":                 "TLS_RSA_WITH_AES_128_CBC_SHA256",
	"AES128-SHA":                    "TLS_RSA_WITH_AES_128_CBC_SHA",
	"AES256-SHA":                    "TLS_RSA_WITH_AES_256_CBC_SHA",
	"DES-CBC3-SHA":                  "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}

// TLSOf is the TLS security profile of a control plane; Intermediate when it names none.
func TLSOf(hcp *hyperv1.HostedControlPlane) TLS {
	profile := APIServer(hcp).TLSSecurityProfile
	if profile == nil {
		profile = &configv1.TLSSecurityProfile{}
	}
	switch profile.Type {
	case configv1.TLSProfileOldType:
		return TLS{MinVersion: string(configv1.VersionTLS10), CipherSuites: toIANA(old)}
	case configv1.TLSProfileModernType:
		return TLS{MinVersion: string(configv1.VersionTLS13)}
	case configv1.TLSProfileCustomType:
		if c := profile.Custom; c != nil {
			min := string(c.MinTLSVersion)
			if min == "" {
				min = string(configv1.VersionTLS12)
			}
			return TLS{MinVersion: min, CipherSuites: toIANA(c.Ciphers)}
		}
	}
	return TLS{MinVersion: string(configv1.VersionTLS12), CipherSuites: toIANA(intermediate)}
}

// toIANA translates names. Those of TLS 1.3 and those that Go does not have are left out; IANA names stay.
func toIANA(names []string) []string {
	var suites []string
	for _, name := range names {
		if suite, ok := iana[name]; ok {
			suites = append(suites, suite)
			continue
		}
		for _, suite := range iana {
			if suite == name {
				suites = append(suites, suite)
				break
			}
		}
	}
	return suites
}

// Flags are the flags that Kubernetes' servers take.
func (t TLS) Flags() []string {
	flags := []string{"--tls-min-version=" + t.MinVersion}
	if len(t.CipherSuites) > 0 && t.MinVersion != string(configv1.VersionTLS13) {
		flags = append(flags, "--tls-cipher-suites="+strings.Join(t.CipherSuites, ","))
	}
	return flags
}

// EtcdMinVersion is the minimum as etcd names it. etcd knows 1.2 and 1.3 only.
func (t TLS) EtcdMinVersion() string {
	if t.MinVersion == string(configv1.VersionTLS13) {
		return "TLS1.3"
	}
	return "TLS1.2"
}

// EtcdCipherSuites are the suites for etcd, which refuses any when its minimum is 1.3.
func (t TLS) EtcdCipherSuites() []string {
	if t.MinVersion == string(configv1.VersionTLS13) {
		return nil
	}
	return t.CipherSuites
}
