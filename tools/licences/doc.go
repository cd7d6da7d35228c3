// Package main tells what is linked into the programs that we hand out, and under which licences: as a text with all of them, which goes into
// every archive and image, as an SPDX document, or as a list.
//
//	go run ./licences -format text -out THIRD_PARTY_LICENSES operators
//	go run ./licences -format spdx -out sbom.spdx.json cli operators
//	go run ./licences                                   # every program, as a list
//
// What is linked is what the go command says of the packages that a program is made of, for each system that it is built for; tests and tools
// don't count. What our own packages embed of others, such as the libraries of the web console, is in the table embeddings. A module without a licence that is known and allowed is an error: nothing is written then.
package main
