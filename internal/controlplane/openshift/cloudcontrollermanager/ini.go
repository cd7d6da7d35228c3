package cloudcontrollermanager

import (
	"fmt"
	"strings"
)

// setting is a line of a configuration file.
type setting struct{ key, value string }

// ini writes sections of a configuration file. Values are one line each: what would begin another is an error, for values come from users.
type ini struct {
	text strings.Builder
	err  error
}

func (i *ini) section(name string, settings ...setting) {
	if i.text.Len() > 0 {
		i.text.WriteString("\n")
	}
	i.text.WriteString("[" + name + "]\n")
	for _, s := range settings {
		if strings.ContainsAny(s.value, "\n\r") && i.err == nil {
			i.err = fmt.Errorf("%s in section %s of the cloud configuration must be one line, not %q", s.key, name, s.value)
		}
		i.text.WriteString(s.key + " = " + s.value + "\n")
	}
}
