// Says where a peer listens, in the words that Tollgate uses. Beside the peers, because they run without a build.
export function announce(server) {
  server.listen(0, '127.0.0.1', () => report(server.address().port));
  process.on('SIGTERM', () => process.exit(0));
}

export function report(port) {
  process.stdout.write(`${JSON.stringify({ msg: 'listening', listener: 'proxy', address: '127.0.0.1', port })}\n`);
}
