// Package contract is the floor that every other package may stand on: what two programs agree on and neither may change alone. Its rooms hold
// names, keys, formats and decisions, and import nothing of ours but the API; whoever needs one of them need not import the program on the other
// side.
package contract
