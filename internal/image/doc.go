// Package image builds container images and release images from files, and pushes them over the registry protocol.
//
// An image is a pure function of its files: times, owners and order are fixed, so the same files give the same digest
// on every machine, and pushing an image that the registry already has sends nothing but a few HEAD requests.
// Layers are not compressed: they travel over loopback only, where compressing costs more than it saves.
package image
