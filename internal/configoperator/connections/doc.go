// Package connections finds out whether the control plane and the workers of a hosted cluster reach each other, and reports it in two
// conditions of the HostedControlPlane.
//
// DataPlaneConnectionAvailable: reading one line of the log of a konnectivity agent goes through kube-apiserver, the tunnel and
// a kubelet, so whoever gets it knows that all of them work. ControlPlaneConnectionAvailable: kubelets renew a Lease every ten
// seconds; that the newest of those is young says that nodes reach the API server, without a program of ours to probe it.
package connections
