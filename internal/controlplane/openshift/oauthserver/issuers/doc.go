// Package issuers asks the issuers of OpenID identity providers where users log in, and whether they take passwords.
//
//	pass ──questions──▶ Book ──in the background──▶ tunnel ──▶ node of the hosted cluster ──▶ issuer
//	  ◀──what is known──┘  └── an answer that differs causes a pass
//
// Who answers is anybody: an answer is bounded in time, size and redirects, only URLs and yes or no are taken from it, and no text of it is told.
// What is known outlives an issuer that is down, and the process: the OAuth server's ConfigMap remembers it.
package issuers
