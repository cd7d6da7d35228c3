package kmshealth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/conditions"
)

const (
	// again is how long after a good pass the next one comes, sooner after another; kube-apiserver asks a plugin each minute, and each ten seconds once it
	// has failed.
	again, sooner = time.Minute, 15 * time.Second
	// unused is how long after a pass the next one comes when keys are in no plugin, and nobody has asked for one.
	unused = 10 * time.Minute
)

// Answer is what kube-apiserver says of a plugin.
type Answer int

// Answers. The server says nothing when it can't be asked, or has no such plugin yet, or any more.
const (
	Nothing Answer = iota
	Well
	Away
)

// judge makes the condition of what servers say of plugins, nil when there are none of these; and says when to look again. A plugin that one server misses is
// away, whatever others say; and all is well only when every server says so. wanted: the spec asks for a plugin, which the configuration has some seconds later.
func judge(plugins []string, servers []answered, wanted bool, generation int64) (c *metav1.Condition, after time.Duration) {
	switch {
	case len(plugins) == 0 && wanted:
		return nil, sooner
	case len(plugins) == 0:
		return nil, unused
	}
	var away []string
	silent := len(servers) == 0
	for i, name := range plugins {
		var pods []string
		for _, s := range servers {
			if s.answers[i] == Away {
				pods = append(pods, s.pod)
			}
			silent = silent || s.answers[i] == Nothing
		}
		if len(pods) > 0 {
			away = append(away, where(name, pods))
		}
	}
	switch {
	case len(away) > 0:
		slices.Sort(away)
		said := conditions.False(encryption.KeysAvailable, encryption.KeysAwayReason, fmt.Sprintf(
			"%s: what these servers have read before they can read, Secrets they can't write, and a kube-apiserver that starts without its plugin does not get ready", strings.Join(slices.Compact(away), "; ")))
		c, after = &said, sooner
	case silent:
		said := conditions.Unknown(encryption.KeysAvailable, hyperv1.StatusUnknownReason, "kube-apiserver does not say whether the plugins answer")
		c, after = &said, sooner
	default:
		said := conditions.True(encryption.KeysAvailable, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
		c, after = &said, again
	}
	c.ObservedGeneration = generation
	return c, after
}

// where says what does not answer, and where to look.
func where(name string, pods []string) string {
	in := "pod " + pods[0]
	if len(pods) > 1 {
		in = "pods " + strings.Join(pods, ", ")
	}
	if encryption.IsOurs(name) {
		return fmt.Sprintf("key %s may not be had: see container kms-plugin in %s", name, in)
	}
	return fmt.Sprintf("key %s may not be had: see its plugin's container in %s, and the service behind it", name, in)
}
