// Package floors says which room of the house may import which: a table of floors, from the ground up, that docs/architecture.md shows and a test
// compares with what the code imports. Go itself forbids circles between packages; the floors forbid them between rooms, too, and any arrow that
// leads up. A new room needs a line here, and then
//
//	UPDATE=true go test ./floors
package floors
