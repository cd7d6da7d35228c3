// Package manifest reads and checks the two files that describe a package: manifest.yaml and manifest.lock.yaml.
package manifest
