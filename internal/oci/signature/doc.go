// Package signature signs images, and says whether images are signed by whom they have to be, in the format of cosign with keys: a signature is an image
// beside the one that it is for, at tag sha256-DIGEST.sig, whose layers are statements ("simple signing") about the digest, each with a signature in an
// annotation.
//
//	ParsePolicy     which keys are required for which images
//	Policy.Check    looks for a signature of an image, and fails without one (who pulls)
//	Sign, Attach    make one (hypershift images sign)
//
// Certificates of Fulcio and entries of Rekor are neither made nor looked at: keys are the only thing that is trusted, and no service is asked.
package signature
