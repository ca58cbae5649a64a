// Package simulation runs the real engine through lives full of faults, each decided by one number, and checks what it
// leaves.
package simulation
