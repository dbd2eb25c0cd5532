package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of times in /proc: USER_HZ, which is 100 on every platform of Linux.
const ticksPerSecond = 100

// Usage is what a process takes of its machine. The zero value stands for a machine without /proc.
type Usage struct {
	// PeakRSS and RSS in bytes: the most that was ever resident, and what is now.
	PeakRSS int64 `json:"peakRSS"`
	RSS     int64 `json:"rss"`
	// CPU time since the start of the process.
	CPU time.Duration `json:"cpu"`
}

// usageOf reads the usage of a process.
func usageOf(pid int) (Usage, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	return Usage{PeakRSS: memory(string(status), "VmHWM:"), RSS: memory(string(status), "VmRSS:"), CPU: cpu(string(stat))}, nil
}

// memory finds a line such as "VmRSS:   1234 kB".
func memory(status, name string) int64 {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// cpu adds user and system time: fields 14 and 15, counted after the name of the command, which may hold blanks.
func cpu(stat string) time.Duration {
	const user, system = 14 - 3, 15 - 3
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0
	}
	var ticks int64
	for _, i := range []int{user, system} {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
