// Package cursor is a connector for an HTTP API of the usual kind: pages behind opaque cursors, a bearer token, rate limits, and an end to
// how long things are kept. It shows what a source that asks ("polls") has to get right. The small protocol it begins with is that of
// package feed; the guide is docs/en/write-a-connector.md.
//
// # The API
//
//	GET /v1/streams?cursor=C                       {"streams":["logins","orders"],"next":"...","more":false}
//	GET /v1/streams/logins/events?cursor=C&limit=N {"events":[{"id":"7","at":"...","body":"..."}],"next":"...","more":true}
//
// A cursor is opaque and names the beginning of a page; none at all is the oldest event that is kept. The answer always has the cursor of what
// follows, also when nothing follows yet. Errors are {"error":{"code":"...","message":"..."}}: 401 for a token that is not valid, 404 for a stream
// that is not there, 410 for a cursor whose events are not kept any more, 429 and 503 with the header Retry-After, and 5xx for what passes.
//
// # Where the difficulties are
//
//   - A cursor names a page and a checkpoint may fall into the middle of one. So the position ([Place]) is the cursor of a page and how many of its
//     events were emitted, and the id of the last one proves after a restart that the page is still what it was.
//   - A limit belongs to the token, not to a reader. Who is told to wait makes everybody wait that uses the same [Source] (pace.go).
//   - Waits outlive a fetch. Fetch is cancelled whenever a split is added, and if it then began again, nothing would ever be waited for; so the next time
//     to ask is kept with the stream, and a cancelled fetch takes up the rest of the wait (fetch.go).
//   - What passes is tried again, more and more slowly, for a bounded time. What does not pass is marked with [sdk.Fatal].
//   - A cursor that has expired ([ErrExpired]) is never answered by beginning somewhere else: that would be silent loss.
//   - The token appears in no text (token.go).
//
// # The files
//
// source.go is what every source has. codec.go keeps splits, and shows how their encoding went from version 1 to version 2. api.go speaks HTTP,
// fetch.go decides whom to ask and when. server.go is a server of the API that throttles, fails and forgets when it is told to. The program
// cmd/collect reads such an API into files.
package cursor
