// Starts kinesalite on loopback with a clock that tests put forward: node kinesalite.js PORT CONTROL. The control port takes POST /?ms=N.
'use strict'
const http = require('http')
const [port, control] = process.argv.slice(2).map(Number)

let ahead = 0
const now = Date.now
Date.now = () => now() + ahead

require('kinesalite')({createStreamMs: 50, deleteStreamMs: 50, updateStreamMs: 50, shardLimit: 1000}).listen(port, '127.0.0.1')

http.createServer((req, res) => {
  const ms = Number(new URL(req.url, 'http://clock').searchParams.get('ms'))
  if (req.method !== 'POST' || !Number.isSafeInteger(ms) || ms <= 0) {
    res.writeHead(400)
  } else {
    ahead += ms
  }
  res.end()
}).listen(control, '127.0.0.1')
