// Package uninstall removes from a management cluster what `hypershift install` put there.
//
//	observe what is installed and who uses it → plan (pure): what goes, what stays, why not → say it → apply
//
// It never strands anything: as long as there are hosted clusters, packages or objects that wait for one of our programs, it refuses
// and says what to do. It may be interrupted and run again at any time.
package uninstall
