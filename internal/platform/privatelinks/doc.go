// Package privatelinks asks for private ways to the load balancers of a control plane, on Azure and GCP: of an internal load balancer's Service it makes an
// AzurePrivateLinkService or a GCPPrivateServiceConnect of the same name. It calls no cloud; what stands behind these objects is made by others.
package privatelinks
