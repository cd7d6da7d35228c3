// Package testenv gives tests a real API server: etcd and kube-apiserver of the bundled Kubernetes, started once per test
// binary, with our CustomResourceDefinitions installed. Tests share it and take a namespace each.
//
//	env := testenv.Start(t)
//	ns := env.Namespace(t)
//	c := env.Client(t, scheme)
//
// The processes die with the test binary, also when that is killed.
package testenv
