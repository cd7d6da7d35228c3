// Package cloud has the flags about clouds of the hypershift-operator, and starts the program that works there (decision 57).
package cloud
