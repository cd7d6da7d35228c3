// Package haproxy starts HAProxy, as Debian has it, with the configurations that components of OpenShift payloads give it.
//
// The payload's own image is not public; the program in it is HAProxy all the same, so what this one refuses or passes on is what that one does.
package haproxy
