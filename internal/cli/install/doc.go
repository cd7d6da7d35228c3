// Package install puts the HyperShift operator and its APIs into a management cluster.
//
// Objects is a pure function of Options: rendering and installing show the same objects in the same order.
//
//	hypershift install          Run: apply CRDs, wait until they are served, apply the rest, wait for the Deployment
//	hypershift install render   Render: print them
package install
