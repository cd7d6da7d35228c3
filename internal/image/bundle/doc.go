// Package bundle is what carries images from where they are built to the registry of a site: one OCI layout, as a folder or as a tar file.
//
//	Writer   makes one (hack/dist)
//	Open     reads one, whichever of the two it is; every byte that is read is compared with its digest
//	Select   which of its entries somebody wants (pure)
//	Save     writes a selection into one file
//	Push     uploads what a registry lacks, a release after all that it names
//	Verify   says what a registry lacks, or has otherwise
//
// Images in a bundle know no registry yet: what names others, release images and the chart, names them at Placeholder. Push writes the registry's
// own name in its place, so these have another digest in each registry, and always the same one there.
package bundle
