// Package images is `hypershift images`: it lists what a bundle holds, carries a part of it, and brings it into the registry of a site.
package images
