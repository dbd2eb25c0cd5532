// Command bench measures KICK as its users run it: installed by Helm with the chart as it is, on a real control plane that
// holds a cluster of a given shape. It prints one Markdown table of targets and measurements and writes all of it as JSON.
//
// What counts are the numbers of requests, taken from the audit log of the API server, and memory. Times belong to the
// machine: they are compared between runs on one machine, and nothing may assert them.
package main
