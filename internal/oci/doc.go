// Package oci is the one room for reading images from registries, whoever reads them: release images, packages, and what the command line looks at.
//
//	reach        addresses that are never asked
//	credentials  pull secrets, and which of their entries is for which repository
//	rewrite      where an image is to be had: overrides and mirrors
//	pull         requests with limits, and the image of an index
//	layers       files of an image, with limits on what is unpacked
//
// What is said to a user about a failure is the business of who asked: internal/release and internal/packages/author/images know what the image should
// have been.
package oci
