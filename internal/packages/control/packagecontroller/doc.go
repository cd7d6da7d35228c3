// Package packagecontroller is the controller of Packages and ClusterPackages: it pulls their images, renders what is in them, and keeps an
// ObjectDeployment of the same name equal to the result.
//
//	image ── pull ──► files ── load ──► package ── admit, render ──► objects ── slices ──► ObjectDeployment
//	         │                 │                   │
//	         Unpacked False    Invalid True        Invalid True            nothing is written unless all of it went well
package packagecontroller
