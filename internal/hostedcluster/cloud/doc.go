// Package cloud defines the hypershift-operator's flags about clouds, and starts the program that calls them (decision 57).
package cloud
