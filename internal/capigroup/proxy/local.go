package proxy

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// loopback are the names of the machine itself, which a request may always be sent to.
func loopback() map[string]bool {
	return map[string]bool{"127.0.0.1": true, "::1": true, "localhost": true}
}

// Local is for a proxy that anybody on a user's machine can reach, and that has the user's rights. It lets nothing through that a web page sends from a
// browser there: a form without a content type, a picture or a link needs nobody's leave, and the page need not see the answer to have written. It
// stands before all else, so that nothing is asked or recorded on behalf of a page, either.
func Local(next http.Handler) http.Handler {
	hosts := loopback()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal := strange(r, hosts)
		if refusal == nil {
			refusal = ofPage(r.Header, hosts)
		}
		if refusal != nil {
			refusal.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// strange refuses a request that is sent to a name that isn't in hosts: one of a stranger's, who let it lead here.
func strange(r *http.Request, hosts map[string]bool) *status {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !hosts[strings.Trim(host, "[]")] {
		return newStatus(http.StatusForbidden, "Forbidden", "this proxy is not known by the name in the Host header; use 127.0.0.1")
	}
	return nil
}

// ofPage refuses what a browser says it sends for a page that isn't of hosts. Clients of an API say neither. Ports make no difference to Origin, but
// to Sec-Fetch-Site they do: a page of another port is of the same site, not of the same origin.
func ofPage(h http.Header, hosts map[string]bool) *status {
	const remedy = "; use kubectl or another program that is no web page"
	for _, origin := range h.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || !hosts[u.Hostname()] {
			return newStatus(http.StatusForbidden, "Forbidden", "header Origin names a web page of another site, which must not use the permissions of this proxy's user"+remedy)
		}
	}
	if slices.ContainsFunc(h.Values("Sec-Fetch-Site"), func(site string) bool {
		return strings.EqualFold(site, "cross-site") || strings.EqualFold(site, "same-site")
	}) {
		return newStatus(http.StatusForbidden, "Forbidden", "header Sec-Fetch-Site says that a web page of another site or port sent this, which must not use the permissions of this proxy's user"+remedy)
	}
	return nil
}
