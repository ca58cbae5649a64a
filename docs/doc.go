// Package docs holds nothing but the tests of the documentation beside it: the programs that embed.md and
// write-a-connector.md quote, which are compiled and run, and the checks that what is quoted is what is run, that links lead
// somewhere, that metrics and errors are called what they are called, and that the pages in zh are mirrors of those in en.
//
// Job files, commands and their output are tested where the command is, in cmd/penstock/internal/cli.
package docs
