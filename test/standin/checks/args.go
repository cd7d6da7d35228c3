// Package checks holds what the programs of an OpenShift payload look at before they start: arguments, files, certificates,
// kubeconfigs and configuration. Every check is a function of its input and says what is wrong with it in a sentence.
package checks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Role says what the value of a flag is, and with that what is checked of it.
type Role string

// Roles of flags.
const (
	Text       Role = "text"       // anything but nothing
	Any        Role = "any"        // also nothing
	Bool       Role = "bool"       // true or false, or no value at all
	Number     Role = "number"     // an integer
	Float      Role = "float"      // a number with a fraction
	Duration   Role = "duration"   // as 15s
	Address    Role = "address"    // host:port, of which the host may be empty
	File       Role = "file"       // a file that exists and isn't empty
	Output     Role = "output"     // a file in a folder that exists
	Dir        Role = "dir"        // a folder that exists
	Kubeconfig Role = "kubeconfig" // a kubeconfig that works
	CA         Role = "ca"         // certificates of authorities
	Cert       Role = "cert"       // a certificate, whose key is the flag with "cert" replaced by "key"
	Key        Role = "key"        // a private key
	TLSVersion Role = "tlsversion" // VersionTLS12, or TLS1.2 as etcd spells it
	Suites     Role = "suites"     // IANA names of cipher suites, by comma
)

// Flag is what a program knows of one of its flags.
type Flag struct {
	Role     Role
	Required bool
	Repeated bool
}

// Flags are the flags of a program by name, without dashes.
type Flags map[string]Flag

// ParseFlags reads a table of flags: words like "config=file!" for a required one and "cors-allowed-origins=text*" for one that may be
// repeated. It panics on a malformed table, which is a constant of the program.
func ParseFlags(table string) Flags {
	flags := Flags{}
	for word := range strings.FieldsSeq(table) {
		name, role, ok := strings.Cut(word, "=")
		f := Flag{}
		if rest, cut := strings.CutSuffix(role, "!"); cut {
			role, f.Required = rest, true
		}
		if rest, cut := strings.CutSuffix(role, "*"); cut {
			role, f.Repeated = rest, true
		}
		f.Role = Role(role)
		if !ok || !slices.Contains(roles, f.Role) {
			panic(fmt.Sprintf("table of flags: %q is not NAME=ROLE with * or !", word))
		}
		flags[name] = f
	}
	return flags
}

var roles = []Role{Text, Any, Bool, Number, Float, Duration, Address, File, Output, Dir, Kubeconfig, CA, Cert, Key, TLSVersion, Suites}

// Values are the flags that were given, each with its values in order.
type Values map[string][]string

// Get is the last value of a flag, as programs take it.
func (v Values) Get(name string) string {
	if all := v[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// Arguments splits a command line into flags and the other words. Flags that aren't in the table, values that don't fit, and missing
// flags are errors.
func Arguments(args []string, flags Flags) (Values, []string, error) {
	values := Values{}
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			words = append(words, arg)
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flag, known := flags[name]
		if !known {
			return nil, nil, fmt.Errorf("flag --%s is unknown; it knows %s", name, strings.Join(slices.Sorted(maps.Keys(flags)), ", "))
		}
		switch {
		case given:
		case flag.Role == Bool:
			value = "true"
		case i+1 < len(args):
			i++
			value = args[i]
		default:
			return nil, nil, fmt.Errorf("flag --%s has no value; write --%s=VALUE", name, name)
		}
		if err := checkValue(flag.Role, value); err != nil {
			return nil, nil, fmt.Errorf("flag --%s: %w", name, err)
		}
		if len(values[name]) > 0 && !flag.Repeated {
			return nil, nil, fmt.Errorf("flag --%s is given twice; give it once", name)
		}
		values[name] = append(values[name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if flags[name].Required && len(values[name]) == 0 {
			return nil, nil, fmt.Errorf("flag --%s is missing; give it", name)
		}
	}
	return values, words, nil
}

func checkValue(role Role, value string) error {
	var err error
	switch role {
	case Any:
		return nil
	case Bool:
		_, err = strconv.ParseBool(value)
	case Number:
		_, err = strconv.ParseInt(value, 10, 64)
	case Float:
		_, err = strconv.ParseFloat(value, 64)
	case Duration:
		_, err = time.ParseDuration(value)
	case Address:
		err = ListenAddress(value)
	case TLSVersion:
		_, err = MinVersion(value)
	case Suites:
		_, err = CipherSuites(strings.Split(value, ","))
	default:
		if value == "" {
			return fmt.Errorf("the value is empty; give one")
		}
		if strings.Contains(value, "$(") {
			return fmt.Errorf("%q refers to a variable that the container doesn't have; add it to env", value)
		}
	}
	return err
}
