// Package kmshealth finds out whether the plugins that hold a hosted cluster's encryption keys answer, and says so in condition SecretEncryptionKeysAvailable.
//
// Each kube-apiserver knows of its own: it asks each plugin every minute, and has a health check for each. These checks are left out of its probes, as a server that is
// started anew, or taken out of its Service, could not even be read from any more. So somebody else has to look at them, at each server.
package kmshealth
