//go:build tools

// Package tools names the program that scripts/workflows.py builds, so that go.mod pins it.
package tools

import _ "github.com/rhysd/actionlint/cmd/actionlint"
