package oadp

import (
	"fmt"
	"strconv"
	"strings"
)

// verbs are schedules by name, in lower case.
var verbs = map[string]string{
	"yearly": "0 0 1 1 *", "annually": "0 0 1 1 *",
	"monthly": "0 0 1 * *",
	"weekly":  "0 0 * * 0", "weekly-sunday": "0 0 * * 0", "weekly-monday": "0 0 * * 1", "weekly-friday": "0 0 * * 5", "weekly-saturday": "0 0 * * 6",
	"daily": "0 0 * * *", "daily-1am": "0 1 * * *", "daily-2am": "0 2 * * *", "daily-3am": "0 3 * * *", "daily-6am": "0 6 * * *", "daily-noon": "0 12 * * *",
	"hourly":  "0 * * * *",
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// cronFields are the five fields of a schedule in their order, with the numbers that each takes. Names of months and days, and 7 for Sunday,
// are not for every program that reads such a schedule, so they are refused.
var cronFields = []struct {
	name     string
	from, to int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day of month", 1, 31}, {"month", 1, 12}, {"day of week", 0, 6}}

// cron turns what --schedule was given into five fields: a verb such as daily or @weekly, or the fields themselves.
func cron(schedule string) (string, error) {
	trimmed := strings.TrimSpace(schedule)
	if known, ok := verbs[strings.ToLower(trimmed)]; ok {
		return known, nil
	}
	fields := strings.Fields(trimmed)
	if len(fields) != len(cronFields) {
		return "", fmt.Errorf("invalid --schedule %q: it has %d fields, not 5 (minute, hour, day of month, month, day of week); or use a word such as daily, weekly-sunday or @hourly",
			schedule, len(fields))
	}
	for i, f := range cronFields {
		for _, item := range strings.Split(fields[i], ",") {
			if err := cronItem(item, f.from, f.to); err != nil {
				return "", fmt.Errorf("invalid --schedule %q: %s %q: %w", schedule, f.name, fields[i], err)
			}
		}
	}
	return strings.Join(fields, " "), nil
}

// cronItem checks one of: *, 5, 1-5, and each of them with /STEP.
func cronItem(item string, from, to int) error {
	span, step, stepped := strings.Cut(item, "/")
	if stepped {
		if n, err := number(step); err != nil || n < 1 || n > to {
			return fmt.Errorf("step %q is not a number between 1 and %d", step, to)
		}
	}
	if span == "*" {
		return nil
	}
	first, last, ranged := strings.Cut(span, "-")
	if !ranged {
		last = first
	}
	a, err := number(first)
	if err != nil || a < from || a > to {
		return fmt.Errorf("%q is not a number between %d and %d", first, from, to)
	}
	b, err := number(last)
	if err != nil || b < from || b > to {
		return fmt.Errorf("%q is not a number between %d and %d", last, from, to)
	}
	if a > b {
		return fmt.Errorf("range %q ends before it begins", span)
	}
	return nil
}

// number reads digits alone: a sign is no part of a schedule.
func number(s string) (int, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}
