package tunnelproxy

import (
	"net"
	"net/netip"
	"strings"
)

// cloudSuffixes are the domains of the APIs of clouds.
var cloudSuffixes = []string{
	"amazonaws.com", "amazonaws.com.cn", "api.aws",
	"azure.com", "azure.cn", "azure.us", "microsoftazure.de", "windows.net", "microsoftonline.com", "microsoftonline.us", "usgovcloudapi.net", "chinacloudapi.cn",
	"cloud.ibm.com", "googleapis.com",
}

// cloudAPI says whether a host is one of a cloud's API.
func cloudAPI(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, suffix := range cloudSuffixes {
		if host == suffix || strings.HasSuffix(host, "."+suffix) {
			return true
		}
	}
	return false
}

// service is the name and the namespace of a Service in the hosted cluster, if that is what a host names: name.namespace.svc, with or without the
// cluster's domain.
func service(host string) (name, namespace string, ok bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	parts := strings.SplitN(host, ".", 4)
	if len(parts) < 3 || parts[2] != "svc" || parts[0] == "" || parts[1] == "" || (len(parts) == 4 && parts[3] != "cluster.local") {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// choose is the address to use among those of a name: the first, or the first IPv4 when these are preferred.
func choose(addresses []string, preferIPv4 bool) (string, bool) {
	if len(addresses) == 0 {
		return "", false
	}
	if preferIPv4 {
		for _, a := range addresses {
			if ip, err := netip.ParseAddr(a); err == nil && ip.Unmap().Is4() {
				return a, true
			}
		}
	}
	return addresses[0], true
}

// isAddress says whether a host is an IP address.
func isAddress(host string) bool { return net.ParseIP(host) != nil }
