// Package debian fetches Debian packages with what they depend on and unpacks them, so that images can be assembled from their
// files. Nothing is installed on this machine, and none of its own files are used.
//
// Packages are downloaded once into a folder and used from there; removing the folder fetches the present versions. Maintainer
// scripts don't run: what they would do, such as choosing between alternatives, is for the image to do.
package debian
