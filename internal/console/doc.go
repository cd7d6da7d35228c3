// Package console is the web console: what a management cluster has, how it is and why, for people who would rather look than read.
//
//	API server ─ one watch a kind ─► world ─ changes ─► server ─ JSON and streams ─► browser (web, built into assets)
//	                                            ▲
//	                                  access: whose request it is, and what they may see
//
// Package world keeps compact rows of what lists show. Package access says who asks, and what they may see: on a person's own machine all that their
// kubeconfig lets them, in a cluster what TokenReview and SubjectAccessReview say of their token. Package server answers: lists from world, filtered row by
// row; details, events and certificates read with the rights of whoever asks; and what people may do, with their rights, too. Package command starts it, in
// both ways. The console's own account writes nothing, and reads no Secrets.
//
// The program in the browser is in web, Preact and TypeScript; the bundle that tools/consolebundle makes of it is committed in assets.
package console
