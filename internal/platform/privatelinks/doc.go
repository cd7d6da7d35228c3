// Package privatelinks asks for private ways to the load balancers of a control plane, on Azure and GCP: for the Service of an internal load balancer it makes an
// AzurePrivateLinkService or a GCPPrivateServiceConnect of the same name. It calls no cloud. The packages that make what stands behind these objects, those of
// AWS included, find here what they share.
package privatelinks
