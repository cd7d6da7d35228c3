// Package cli is the command "hypershift local".
//
// What it runs are processes of Linux: elsewhere the command says so, and the rest of the program works as everywhere.
package cli
