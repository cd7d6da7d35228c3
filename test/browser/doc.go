// Package browser looks at the web console in a real Chromium, as people do: every page against a seeded fleet on a real API server, by keyboard, with
// hostile texts, and with a connection that is cut. It is a module of its own, so that nothing else is built with a browser's protocol.
//
//	make test-browser                  # fetches chromium from Debian; make test leaves it out
//	make test-browser UPDATE=true      # also writes the pictures of docs/console.md
//
// PICTURES=folder has one of every page written there.
package browser
