// Package bare runs the programs of a hosted control plane as plain processes of this machine: the bundled binaries with
// the arguments, files and certificates that the components render, and no operator, kubelet or container.
//
//	objs := bare.Credentials(t)
//	pods, more := bare.Render(t, bare.Context(t, bare.HostedControlPlane(), objs...), controlplane.Components())
//	m := bare.NewMachine(t, append(objs, more...))
//	m.Start("etcd", pods["etcd"])
//	m.Answers(ctx, "http", "metrics", "/readyz")
//
// Tests prove with it that what is rendered boots; benchmarks take it as the floor that a hosted cluster is compared with.
package bare
