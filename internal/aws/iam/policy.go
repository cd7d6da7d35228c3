// Package iam makes and removes the roles of a hosted cluster on AWS, and the provider that lets its service accounts take them on.
package iam

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Document is a policy in IAM's language.
type Document struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Statement allows something.
type Statement struct {
	Sid       string                    `json:"Sid,omitempty"`
	Effect    string                    `json:"Effect"`
	Principal map[string]any            `json:"Principal,omitempty"`
	Action    any                       `json:"Action"`
	Resource  any                       `json:"Resource,omitempty"`
	Condition map[string]map[string]any `json:"Condition,omitempty"`
}

const languageVersion = "2012-10-17"

func document(statements ...Statement) Document {
	return Document{Version: languageVersion, Statement: statements}
}

// allow reads actions as `service: Action Action …`; resources are * if none is given.
func allow(actions string, resources ...string) Statement {
	s := Statement{Effect: "Allow", Action: parse(actions), Resource: "*"}
	switch len(resources) {
	case 0:
	case 1:
		s.Resource = resources[0]
	default:
		s.Resource = resources
	}
	return s
}

func (s Statement) when(operator, key string, value any) Statement {
	conditions := map[string]map[string]any{operator: {key: value}}
	for op, pairs := range s.Condition {
		if conditions[op] == nil {
			conditions[op] = map[string]any{}
		}
		for k, v := range pairs {
			conditions[op][k] = v
		}
	}
	s.Condition = conditions
	return s
}

func (s Statement) named(sid string) Statement { s.Sid = sid; return s }

// parse expands `ec2: A B elb: C` to ec2:A, ec2:B, elb:C.
func parse(text string) []string {
	var list []string
	service := ""
	for _, word := range strings.Fields(text) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			service = name
			continue
		}
		list = append(list, service+":"+word)
	}
	return list
}

// String is the policy as JSON, the same for the same policy.
func (d Document) String() string {
	raw, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("policy: %v", err)) // only strings and maps of them
	}
	return string(raw)
}

// same compares policies as IAM gives them back, escaped for URLs, with what they should be.
func same(escaped string, want Document) bool {
	plain, err := url.QueryUnescape(escaped)
	if err != nil {
		return false
	}
	var a, b any
	if json.Unmarshal([]byte(plain), &a) != nil || json.Unmarshal([]byte(want.String()), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}

// webIdentity lets service accounts of an issuer take on a role.
func webIdentity(providerARN, providerName string, accounts []string) Document {
	var subjects []string
	for _, account := range accounts {
		if subject := "system:serviceaccount:" + account; !slices.Contains(subjects, subject) {
			subjects = append(subjects, subject)
		}
	}
	var value any = subjects
	if len(subjects) == 1 {
		value = subjects[0]
	}
	return document(Statement{
		Effect: "Allow", Principal: map[string]any{"Federated": providerARN}, Action: "sts:AssumeRoleWithWebIdentity",
		Condition: map[string]map[string]any{"StringEquals": {providerName + ":sub": value}},
	})
}

// trustARNs lets identities take on a role.
func trustARNs(arns ...string) Document {
	var value any = arns
	if len(arns) == 1 {
		value = arns[0]
	}
	return document(Statement{Effect: "Allow", Principal: map[string]any{"AWS": value}, Action: "sts:AssumeRole"})
}

func trustService(service string) Document {
	return document(Statement{Effect: "Allow", Principal: map[string]any{"Service": service}, Action: "sts:AssumeRole"})
}
