// Package systemd enables and disables units on a machine that systemd runs, below the folder that the machine's root is mounted at, by the links that
// `systemctl enable` and `disable` would make and remove. They count from the machine's next boot on.
//
// A machine that was changed is to run what a new one with the same configuration would: there Ignition enables units by presets, which systemd reads at the
// first boot only.
package systemd
