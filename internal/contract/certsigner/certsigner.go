// Package certsigner names the signers of certificates that a control plane has in the management cluster, and says what the
// control-plane-pki-operator, which approves and signs for them, may do there. The hypershift-operator grants it.
package certsigner

import (
	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
)

// Classes are those of the users whom a control plane signs certificates for.
var Classes = []certificatesv1alpha1.SignerClass{certificatesv1alpha1.CustomerBreakGlassSigner, certificatesv1alpha1.SREBreakGlassSigner}

// Name is the signerName of CertificateSigningRequests for a class, in the control plane namespace.
func Name(namespace string, class certificatesv1alpha1.SignerClass) string {
	return "hypershift.openshift.io/" + namespace + "." + string(class)
}

// Names are those of all classes.
func Names(namespace string) (names []string) {
	for _, class := range Classes {
		names = append(names, Name(namespace, class))
	}
	return names
}
