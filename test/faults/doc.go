// Package faults breaks things around the manager and looks at what is left: it runs the manager as a process that
// reaches the API server through a proxy, which fails, delays, cuts and withholds requests on demand, and which kills the
// manager at the very request it is told to.
//
// The ordinary run takes a fair sample of each matrix, with -short a small one. KICK_TEST_FULL=1 takes all of it.
//
// TestSoak, which runs on demand only, lets everything happen at random at the same time.
package faults
