// Package ignite applies an Ignition config (version 3.x) to a machine, as Ignition itself would at the first boot: it reads the
// user data, fetches the configs that it names, merges them, and writes directories, files, links and units.
//
// There are no disks to partition in a machine of platform Local and no SSH server, so storage.disks, raid, luks and filesystems are
// refused; passwd and kernelArguments are left out with a line in the console log.
//
// Everything that comes from outside is bounded: see the constants in bounds.go.
package ignite
