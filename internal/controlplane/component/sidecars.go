package component

// The programs of hcp-sidecar that assets of components start, and the flags that they rely on. The image has no shell, so
// every argument is literal or a $(VARIABLE) of the container.
//
//	hcp-sidecar etcd-init reset-member          init container of etcd with several members
//	    --config-template=FILE                  etcd's configuration, with $(POD_NAME)
//	    --config-out=FILE                       where etcd finds it completed
//	    --state-file=FILE                       gets new or existing
//	    --marker=FILE                           there once the cluster has had a quorum: a member without data then waits
//	                                            for the others and never founds a cluster
//	    --endpoint=URL                          client URL of the cluster (Service etcd-client)
//	    --cacert=FILE --cert=FILE --key=FILE    how to speak to it
//	hcp-sidecar etcd-init restore               init container of etcd that starts from a snapshot
//	    --config-template=FILE                  as above
//	    environment RESTORE_URL_ETCD            where the snapshot is. Nothing is done when the data folder is not empty.
//	hcp-sidecar audit-tail FILE                 writes the lines that are added to FILE to standard output
//	hcp-sidecar capi-proxy                      shows Cluster API's objects under the standard groups, see capiproxy.go
//	    --inject-token                          acts as the pod's ServiceAccount
//	    --write-kubeconfig=FILE                 how programs in the pod reach it
//
// What components of OpenShift payloads have beside them are commands of the control-plane-operator, in the image with its tag:
//
//	control-plane-operator availability-prober  init container that ends when the hosted API server answers
//	    --target URL                            what has to answer 2xx; certificates are not verified
//	    --kubeconfig=FILE                       for the following
//	    --required-api=GROUP,VERSION,KIND       repeated: must be served
//	    --wait-for-infrastructure-resource
//	    --wait-for-labeled-pods-gone=NAMESPACE/LABEL=VALUE
//	    --wait-for-cluster-rolebinding=NAME
//	control-plane-operator token-minter         keeps a token of a ServiceAccount of the hosted cluster in a file
//	    --token-audience --service-account-namespace --service-account-name --token-file
//	    --kubeconfig | --kubeconfig-secret-namespace --kubeconfig-secret-name
//	    --oneshot
//	control-plane-operator konnectivity-https-proxy run, konnectivity-socks5-proxy run
//	    --serving-port --connect-directly-to-cloud-apis --prefer-ipv4 --http-proxy --https-proxy --no-proxy
//	    --resolve-from-guest-cluster-dns --resolve-from-management-cluster-dns --disable-resolver
const (
	// operatorCommand is in the image with the tag ImageControlPlaneOperator and those that are the same image.
	operatorCommand = "/usr/bin/control-plane-operator"

	// ImageControlPlaneOperator is the tag of our image in a release.
	ImageControlPlaneOperator = "controlplane-operator"
	imageAvailabilityProber   = "availability-prober"
	imageTokenMinter          = "token-minter"
)
