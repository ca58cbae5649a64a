// Package option describes settings once and derives everything else from that: how they are read from a job file, what is
// wrong with them, and how they are explained to a person.
//
// An [Option] is bound to a Go variable when it is made, like a flag of package flag: the variable's value at that moment
// is the default, and decoding a job file overwrites it. A [Group] is a mapping of options, with checks between them.
//
//	dir, interval := "", 10*time.Second
//	group := option.Group{Options: []*option.Option{
//		option.Text("dir", &dir, "Directory of the checkpoints.").Require(),
//		option.Duration("interval", &interval, 0, "Time between checkpoints."),
//	}}
//
// [Decode] never stops at the first problem: it goes through the whole document and collects a [Problem] for whatever does
// not fit, with its place in the file and, for names, what was probably meant.
//
// Text is expanded as it is read: ${NAME} is the environment variable NAME, which must be set, ${NAME:-text} is text when it is
// unset or empty, $$ is one $. A secret may also be read from a file: {file: PATH}.
package option
