// Package images reads packages from images, and makes images of packages. Registries and what they hold are not trusted: every read has a
// limit in bytes, entries and time, and what belongs in no package is refused rather than skipped.
package images
