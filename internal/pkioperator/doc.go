// Package pkioperator is the control-plane-pki-operator: certificates for those who cannot log in to a hosted cluster in any
// other way ("break glass").
//
// There are two signers, one for the owners of the hosted cluster and one for those who run the service. For each, it keeps a
// certificate authority that lives a week and is replaced every two days, a bundle of all authorities that are still good, and a
// client certificate. kube-apiserver trusts the bundles by way of ConfigMap total-client-ca, which the control-plane-operator
// merges into what it is given.
//
// A CertificateSigningRequest of the management cluster for one of these signers is approved when the control plane namespace
// has a CertificateSigningRequestApproval of the same name: the rights on that namespace are the authorization. An approved one is
// signed. A CertificateRevocationRequest makes every certificate void that a signer has issued until then:
//
//	commit → new authority → trusted everywhere → new leaves → old authority distrusted → rejected everywhere
//
// Each step is one write, and is decided from what is stored, so that the process may die anywhere.
package pkioperator
