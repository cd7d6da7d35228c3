package manager

import "github.com/spf13/pflag"

// DoubleDashes turns "-flag" into "--flag" for every flag that there is: the published programs take both.
func DoubleDashes(fs *pflag.FlagSet, args []string) []string { return doubleDashes(fs, args) }
