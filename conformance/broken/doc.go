// Package broken holds a source with one mistake at a time, to show that the conformance suite finds it: for each case of the suite there is a
// [Defect] that fails it. The sound source, without a defect, passes all.
//
// Neither reader nor enumerator is built on package base, which rules most of these mistakes out. What they look like without it is worth a
// look for whoever thinks of writing an [sdk.Reader] by hand: each place where code asks for a defect is one at which a connector has gone
// wrong somewhere.
package broken
